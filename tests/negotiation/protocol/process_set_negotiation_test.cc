// Process sets in the negotiation: ranks that are awaited, and sets that must
// not delay each other.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::AddSet;
using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Request SetSum(const std::string& name, ProcessSetId process_set) {
  return Gradient(name, 16, process_set);
}

// The names of the operations that a rank has run, bucket by bucket.
std::vector<std::string> OperationsRun(const SimWorld& world, int rank) {
  std::vector<std::string> names;
  for (const auto& done : world.done(rank)) {
    if (done.kind != Decision::Kind::kBucket) continue;
    names.insert(names.end(), done.tensors.begin(), done.tensors.end());
  }
  return names;
}

std::string FailureOf(const SimWorld& world, int rank,
                      const std::string& name) {
  for (const auto& done : world.done(rank)) {
    const bool bucket = done.kind == Decision::Kind::kBucket;
    if (!bucket && ::testing::Value(done.tensors, ::testing::Contains(name))) {
      return done.message;
    }
  }
  return "did not fail";
}

TEST(ProcessSetNegotiationTest, SetsAreNumberedAlikeOnEveryRank) {
  SimWorld world({5}, SmallBuckets());
  EXPECT_EQ(world.AddProcessSet({1, 3}), 1u);
  EXPECT_EQ(world.AddProcessSet({0}), 2u);
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(world.done(rank), world.done(0));
    EXPECT_THAT(world.done(rank), SizeIs(2));
  }
}

TEST(ProcessSetNegotiationTest, OnlyMembersAreAwaitedAndTakePart) {
  // The sets include leaves, inner nodes of the tree and the root, as members
  // and as other ranks.
  for (const std::vector<int>& members :
       std::vector<std::vector<int>>{{0, 6}, {5, 6}, {1, 5}, {3}, {2, 3, 4}}) {
    SimWorld world({7, 1}, SmallBuckets());
    const ProcessSetId set = world.AddProcessSet(members);
    // First announced, then registered, then by id.
    for (int step = 0; step < 4; ++step) world.Run(SetSum("x", set), members);
    for (int rank = 0; rank < 7; ++rank) {
      const bool member =
          std::find(members.begin(), members.end(), rank) != members.end();
      EXPECT_THAT(OperationsRun(world, rank), SizeIs(member ? 4 : 0)) << rank;
    }
    for (const auto& done : world.done(members.back())) {
      if (done.kind != Decision::Kind::kBucket) continue;
      EXPECT_EQ(done.participants, static_cast<int>(members.size()));
    }
  }
}

TEST(ProcessSetNegotiationTest, OnlyMembersGetAMismatch) {
  SimWorld world({4}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({1, 2, 3});
  Request other = SetSum("x", set);
  other.tensors[0].shape = {17};
  world.Submit(1, SetSum("x", set));
  world.Submit(2, other);
  world.Submit(3, SetSum("x", set));
  world.Settle();
  for (const int rank : {1, 2, 3}) {
    EXPECT_THAT(
        FailureOf(world, rank, "x"),
        AllOf(HasSubstr("[16] on ranks 1, 3"), HasSubstr("[17] on rank 2")));
  }
  EXPECT_THAT(world.done(0), SizeIs(1)) << "the set itself";
}

TEST(ProcessSetNegotiationTest, RanksThatDisagreeAboutTheMembersAllFail) {
  SimWorld world({3}, SmallBuckets());
  for (int rank = 0; rank < 3; ++rank) {
    world.Submit(rank, AddSet({0, rank == 2 ? 2 : 1}));
  }
  world.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(
        FailureOf(world, rank, "add"),
        AllOf(HasSubstr("[0, 1] on ranks 0-1"), HasSubstr("[0, 2] on rank 2")));
  }
}

TEST(ProcessSetNegotiationTest, DisjointSetsDoNotWaitForARunningBucket) {
  SimWorld world({4}, SmallBuckets());
  const ProcessSetId first = world.AddProcessSet({0, 1});
  const ProcessSetId second = world.AddProcessSet({2, 3});
  for (const int rank : {0, 1}) {
    world.SubmitUrgently(rank, SetSum("long", first));
  }
  // The root is inside the bucket from now on.
  ASSERT_TRUE(world.BeginAfterAll(0));
  world.Run(SetSum("x", second), {2, 3});
  EXPECT_THAT(OperationsRun(world, 2), ElementsAre("x"));
  EXPECT_THAT(OperationsRun(world, 3), ElementsAre("x"));
}

// Rings of overlapping sets; each rank submits in its own order.
TEST(ProcessSetNegotiationTest, OverlappingSetsInAnyOrderNeverDeadlock) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int size = 3 + static_cast<int>(seed % 4);
    SimWorld world(
        {size, 1 + static_cast<int>(seed % 2), 1 + static_cast<int>(seed % 3)},
        SmallBuckets());
    std::vector<std::pair<ProcessSetId, std::vector<int>>> sets;
    for (int rank = 0; rank < size; ++rank) {
      std::vector<int> members = {rank, (rank + 1) % size};
      std::sort(members.begin(), members.end());
      sets.emplace_back(world.AddProcessSet(members), members);
    }
    std::vector<SimWorld::Submission> all;
    for (const auto& [set, members] : sets) {
      for (int i = 0; i < 3; ++i) {
        for (const int member : members) {
          all.push_back({member, SetSum(absl::StrCat("s", set, ".", i), set)});
        }
      }
    }
    for (int step = 0; step < 5; ++step) world.RunShuffled(all, random);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_THAT(OperationsRun(world, rank), SizeIs(2 * 15));
    }
  }
}

TEST(ProcessSetNegotiationTest, RemovalRunsReadyOperationsAndFailsTheRest) {
  SimWorld world({3}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({1, 2});
  for (const int rank : {1, 2}) world.Submit(rank, SetSum("ready", set));
  world.Submit(1, SetSum("on rank 1 alone", set));
  world.SubmitEverywhere(SetSum("world", 0));
  world.SubmitRemoval(set);
  world.Settle();
  EXPECT_THAT(OperationsRun(world, 2), ElementsAre("ready"));
  EXPECT_THAT(FailureOf(world, 1, "on rank 1 alone"),
              HasSubstr("process set 1 has been removed"));
  EXPECT_FALSE(world.IsPending(0, "remove"));
  EXPECT_TRUE(world.IsPending(0, "world")) << "no thread waits for it";
  // A late submission fails immediately and affects no other rank.
  world.Submit(2, SetSum("late", set));
  world.Settle();
  EXPECT_THAT(FailureOf(world, 2, "late"), HasSubstr("has been removed"));
  world.MarkUrgent(0, "world");
  world.Settle();
  EXPECT_THAT(OperationsRun(world, 2), ElementsAre("ready", "world"));
}

// The names are new or have an id; they come from a leaf below another rank.
TEST(ProcessSetNegotiationTest, OnlySubmissionsAfterTheRemovalFail) {
  for (const bool known : {false, true}) {
    SimWorld world({7}, SmallBuckets());
    const ProcessSetId set = world.AddProcessSet({0, 1, 6});
    for (int step = 0; known && step < 3; ++step) {
      world.Run(SetSum("late", set), {0, 1, 6});
    }
    world.SubmitRemoval(set);
    world.Submit(6, SetSum("late", set));
    world.Settle();
    EXPECT_THAT(FailureOf(world, 6, "late"), HasSubstr("has been removed"));
    world.Run(SetSum("world", 0));
  }
}

TEST(ProcessSetNegotiationTest, RemovingTwiceFailsOnEveryRank) {
  SimWorld world({3}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({0, 1});
  world.SubmitRemoval(set, "first");
  world.SubmitRemoval(set, "second");
  world.Settle();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(FailureOf(world, rank, "first"),
              "process set 1 has been removed "
              "by remove_process_set()");
    EXPECT_THAT(FailureOf(world, rank, "second"), HasSubstr("before"));
  }
}

TEST(ProcessSetNegotiationTest, NamesOfARemovedSetCanBeUsedAgain) {
  SimWorld world({3}, SmallBuckets());
  for (int i = 0; i < 3; ++i) {
    const ProcessSetId set = world.AddProcessSet({0, 2});
    for (int step = 0; step < 3; ++step) world.Run(SetSum("x", set), {0, 2});
    world.SubmitRemoval(set, absl::StrCat("remove ", i));
    world.Settle();
  }
  EXPECT_THAT(OperationsRun(world, 0), SizeIs(9));
  EXPECT_THAT(OperationsRun(world, 2), SizeIs(9));
  EXPECT_THAT(OperationsRun(world, 1), IsEmpty());
}

TEST(ProcessSetNegotiationTest, StallNamesOnlyTheMissingMembers) {
  Negotiator::Options options = SmallBuckets();
  options.heartbeat.timeout = absl::InfiniteDuration();
  SimWorld world({5}, options);
  const ProcessSetId set = world.AddProcessSet({0, 3, 4});
  world.Submit(3, SetSum("x", set));
  world.Settle();
  world.Stop(4);
  world.AdvanceBySteps(absl::Seconds(200), absl::Seconds(1));
  ASSERT_FALSE(world.warnings.empty());
  EXPECT_THAT(world.warnings.front(),
              AllOf(HasSubstr("for 2 of 3 ranks"), HasSubstr("rank 0 (host0)"),
                    HasSubstr("rank 4 (host4): does not answer"),
                    Not(HasSubstr("rank 1")), Not(HasSubstr("rank 2"))));
}

}  // namespace
}  // namespace hvdlite::negotiation
