#include "negotiation/world/process_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hvdlite::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rank 0 of a world of one rank.
class ProcessSetTest : public ::testing::Test {
 protected:
  ProcessSetTest() {
    Config config;
    config.backend = "single";
    config.coordinator_core = "none";
    world_ = World::Start(config).value();
  }
  ~ProcessSetTest() override {
    world_->Close("the test is over", absl::InfiniteDuration()).IgnoreError();
  }

  std::shared_ptr<ProcessSetState> SetOf(std::vector<int> ranks) const {
    auto state = std::make_shared<ProcessSetState>();
    state->id = 3;
    state->ranks = std::move(ranks);
    state->world = world_;
    return state;
  }

  // The text of the error that the set cannot be used.
  std::string RefusalOf(const std::shared_ptr<ProcessSetState>& state) const {
    const auto members = MembersOf(*world_, state, "allreduce");
    EXPECT_EQ(members.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(members.status().message());
  }

  std::shared_ptr<World> world_;
};

TEST_F(ProcessSetTest, NullStateIsAllRanks) {
  const auto members = MembersOf(*world_, nullptr, "allreduce");
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_THAT(members->ranks, ElementsAre(0));
  EXPECT_EQ(members->id, 0);
  EXPECT_EQ(members->Describe(), "the world's only rank, 0");
}

TEST_F(ProcessSetTest, RanksAreCountedWithinTheSet) {
  const auto members = MembersOf(*world_, SetOf({0, 2}), "allreduce");
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->rank, 0);
  EXPECT_EQ(members->size(), 2);
  EXPECT_TRUE(members->contains(2));
  EXPECT_FALSE(members->contains(1));
  EXPECT_THAT(members->Describe(), HasSubstr("(process set 3)"));
}

TEST_F(ProcessSetTest, SetWithoutThisRankIsRefused) {
  EXPECT_THAT(RefusalOf(SetOf({1, 2})),
              HasSubstr("allreduce: rank 0 is not in the process set"));
}

TEST_F(ProcessSetTest, RemovedSetIsRefused) {
  const auto state = SetOf({0});
  state->removed = true;
  EXPECT_THAT(RefusalOf(state),
              HasSubstr("allreduce: the process set was removed"));
}

TEST_F(ProcessSetTest, SetOfAnEarlierWorldIsRefused) {
  const auto state = SetOf({0});
  state->world.reset();
  EXPECT_THAT(RefusalOf(state), HasSubstr("before the last hvdlite::init()"));
}

TEST(ProcessSetNameTest, NamesOfDifferentSetsDiffer) {
  EXPECT_EQ(NameInSet("gradient", 0), "gradient");
  EXPECT_EQ(NameInSet("gradient", 3), "gradient@process_set.3");
  EXPECT_TRUE(CheckName("gradient", "allreduce").ok());
  EXPECT_EQ(CheckName("gradient@process_set.3", "allreduce").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AllRanksTest, ListsAreNeverMoved) {
  const std::vector<int>& three = AllRanks(3);
  EXPECT_THAT(three, ElementsAre(0, 1, 2));
  AllRanks(4);
  EXPECT_EQ(&AllRanks(3), &three);
}

}  // namespace
}  // namespace hvdlite::internal
