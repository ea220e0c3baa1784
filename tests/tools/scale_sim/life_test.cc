// What negotiation costs the busiest rank does not grow with the world.
#include "tools/scale_sim/life.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::map<std::string, PhaseLoad> LifeOf(const LifeOptions& options) {
  const absl::StatusOr<std::vector<PhaseLoad>> life = SimulateLife(options);
  EXPECT_TRUE(life.ok()) << life.status();
  std::map<std::string, PhaseLoad> phases;
  if (!life.ok()) return phases;
  for (const PhaseLoad& load : *life) phases[load.phase] = load;
  return phases;
}

LifeOptions Life(int ranks) {
  LifeOptions options;
  options.ranks = ranks;
  options.network.ranks_per_node = 48;
  options.tensors = 40;
  options.stalled_tensors = 100;
  return options;
}

// The life of so many ranks, simulated once.
const std::map<std::string, PhaseLoad>& LifeOfRanks(int ranks) {
  static auto* const lives =
      new std::map<int, std::map<std::string, PhaseLoad>>();
  const auto [life, is_new] = lives->try_emplace(ranks);
  if (is_new) life->second = LifeOf(Life(ranks));
  return life->second;
}

// A rank that leads its node has a parent, and 8 children on its node and 8
// among the other nodes. No bound here depends on the number of ranks.
constexpr int64_t kLinks = 17;

TEST(LifeTest, LoadOfTheBusiestRankIsBoundedInWorldsOfAnySize) {
  for (const int ranks : {64, 1024}) {
    auto phases = LifeOfRanks(ranks);
    ASSERT_EQ(phases.size(), 6u) << ranks;
    const auto expect = [&](const std::string& phase, int64_t messages,
                            int64_t bytes) {
      EXPECT_LE(phases[phase].max_messages, messages * kLinks)
          << phase << ", " << ranks << " ranks";
      EXPECT_LE(phases[phase].max_bytes, bytes * kLinks)
          << phase << ", " << ranks << " ranks";
    };
    // Two steps: each a report up, a directive down that asks for it, and one
    // per batch; and two for the gate of each batch.
    expect("announcing", 16, 20'000);
    expect("steady", 8, 200);
    // What is announced, a report of stalls, a probe, an answer.
    expect("one late", 6, 10'000);
    expect("one early", 6, 10'000);
    // First and last departure, last call and answer, the decision, and the
    // same as above.
    expect("late to leave", 8, 1000);
    expect("shutdown", 3, 200);
  }
}

TEST(LifeTest, LoadOfALookDoesNotDependOnHowManyOperationsWait) {
  LifeOptions few = Life(64);
  few.stalled_tensors = 12;
  const PhaseLoad with_few = LifeOf(few)["one early"];
  const PhaseLoad with_many = LifeOfRanks(64).at("one early");
  // Nobody has announced anything but the one that is early.
  EXPECT_EQ(with_many.root_messages, with_few.root_messages);
  EXPECT_LE(with_many.root_bytes, with_few.root_bytes + kLinks);
}

TEST(LifeTest, UsersAreToldWhoIsLateInWordsOfBoundedLength) {
  auto phases = LifeOfRanks(1024);
  EXPECT_THAT(phases["one late"].warnings,
              ElementsAre(AllOf(HasSubstr("and 96 more have waited 1m"),
                                HasSubstr("for 1 of 1024 ranks"),
                                HasSubstr("rank 1023 (node21): last submitted "
                                          "'gradient.layer39.weight'"))));
  EXPECT_THAT(phases["one early"].warnings,
              ElementsAre(AllOf(HasSubstr("for 1023 of 1024 ranks"),
                                HasSubstr("rank 7 (node0): last submitted"),
                                HasSubstr("; ranks 8-1022."))));
  EXPECT_THAT(phases["late to leave"].warnings,
              ElementsAre(HasSubstr("'shutdown()' has waited 1m for 1 of 1024 "
                                    "ranks to call it: rank 1023 (node21)")));
}

TEST(LifeTest, PhasesAreAsManyAsAreToldOf) {
  for (const int ranks : {1, 4}) {
    int told = 0;
    LifeOptions options = {.ranks = ranks, .network = {}};
    options.on_phase = [&] { ++told; };
    ASSERT_TRUE(SimulateLife(options).ok());
    EXPECT_EQ(told, PhasesOfLife(ranks));
  }
}

}  // namespace
}  // namespace hvdlite::scale_sim
