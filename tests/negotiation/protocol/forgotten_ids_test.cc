// Ids that are forgotten and used again, also while reports with them are on
// their way; and names with several ids.
#include <algorithm>
#include <random>
#include <set>
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

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using hvdlite::testing::WorldShape;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Counts of messages between ranks since Clear().
struct Traffic {
  explicit Traffic(SimWorld& world) {
    world.on_send = [this](const std::string& bytes) { Add(bytes); };
  }

  void Add(const std::string& bytes) {
    wire::Message message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    announced += message.report().announced_size();
    for (const wire::Decision& decision : message.directive().decisions()) {
      if (decision.has_forgotten()) ++forgetting;
      for (const auto& registration : decision.bucket().registered()) {
        registered.insert(registration.id());
      }
      for (const auto& registration : decision.bucket().absent_registered()) {
        registered.insert(registration.id());
      }
    }
  }
  void Clear() {
    announced = forgetting = 0;
    registered.clear();
  }

  int announced = 0;
  int forgetting = 0;  // decisions, counted once per link
  std::set<uint32_t> registered;
};

Negotiator::Options Forgetting(uint64_t max_idle_uses) {
  Negotiator::Options options = SmallBuckets();
  options.max_idle_uses = max_idle_uses;
  return options;
}

class ForgottenIdsTest : public ::testing::TestWithParam<WorldShape> {};

// Ids are kept for one use or a few, names stand for several requests in turn,
// and each rank releases names at any time. Every rank submits in its own
// order, with messages in between.
TEST_P(ForgottenIdsTest, EveryRankDoesTheSameWhileIdsAreForgotten) {
  constexpr int kNames = 6;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    SimWorld world(GetParam(), Forgetting(3 + seed % 4 * 2));
    Traffic traffic(world);
    for (int round = 0; round < 10; ++round) {
      std::vector<SimWorld::Submission> all;
      for (int i = 0; i < kNames * world.size(); ++i) {
        const int name = i / world.size();
        all.push_back(
            {i % world.size(), Gradient(absl::StrCat("t", name),
                                        8 + name + (round * name) % 2 * 100)});
      }
      world.RunShuffled(std::move(all), random, [&] {
        if (random() % 8 != 0) return;
        world.Release(static_cast<int>(random() % world.size()),
                      absl::StrCat("t", random() % kNames));
      });
      for (int rank = 0; rank < world.size(); ++rank) {
        ASSERT_EQ(world.done(rank), world.done(0)) << "rank " << rank;
        ASSERT_FALSE(world[rank].has_work()) << "rank " << rank;
      }
    }
    int tensors = 0;
    for (const auto& done : world.done(0)) {
      ASSERT_EQ(done.kind, Decision::Kind::kBucket) << done.message;
      tensors += static_cast<int>(done.tensors.size());
    }
    EXPECT_EQ(tensors, 10 * kNames);
    EXPECT_GT(traffic.forgetting, 0) << "nothing was forgotten";
    EXPECT_THAT(traffic.registered, SizeIs(::testing::Lt(40u)))
        << "ids are used again";
  }
}

// The same while ranks join, and learn from full requests what they take part
// in.
TEST_P(ForgottenIdsTest, JoinedRanksForgetLikeTheOthers) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    SimWorld world(GetParam(), Forgetting(2));
    const int size = world.size();
    for (int round = 0; round < 6; ++round) {
      const int joined = static_cast<int>(random() % size);
      const int when = static_cast<int>(random() % 5);
      for (int i = 0; i < 5; ++i) {
        if (i == when) world.Join(joined);
        for (int rank = 0; rank < size; ++rank) {
          if (i >= when && rank == joined) continue;
          world.SubmitUrgently(rank,
                               Gradient(absl::StrCat("t", i), 8 + round % 2));
          world.Step(random);
        }
        if (random() % 2 == 0) {
          world.Release(static_cast<int>(random() % size),
                        absl::StrCat("t", random() % 5));
        }
        world.Settle(random);
        for (int rank = 0; rank < size; ++rank) {
          ASSERT_FALSE(world.IsPending(rank, absl::StrCat("t", i)));
          ASSERT_EQ(world.done(rank).back().kind, Decision::Kind::kBucket);
          ASSERT_EQ(world.done(rank).back().participants,
                    i >= when ? size - 1 : size);
        }
      }
      for (int rank = 0; rank < size; ++rank) {
        if (rank != joined) world.Join(rank);
      }
      world.Settle(random);
      for (int rank = 0; rank < size; ++rank) {
        ASSERT_EQ(world.done(rank).back().kind, Decision::Kind::kAllJoined);
      }
    }
  }
}

// Each rank in turn reports by an id that has just been forgotten. Ranks that
// know this announce what they submit.
TEST_P(ForgottenIdsTest, ReportThatCrossesTheDecisionIsUnderstood) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (const bool coalesced : {false, true}) {
      for (int early = 1; early < GetParam().ranks;
           early += std::max(1, GetParam().ranks / 8)) {
        std::mt19937 random(seed);
        SimWorld world(GetParam(), Forgetting(1000));
        for (int i = 0; i < 3; ++i) world.Run(Gradient("a"));
        world[0].Release("a");
        world[0].Plan();  // decided, but not sent
        world.Submit(early, Gradient("a"));
        if (!coalesced) world.MarkUrgent(early, "a");
        world.Submit(0, Gradient("a"));  // sends the decision, too
        world.Settle(random);
        for (int rank = 1; rank < world.size(); ++rank) {
          if (rank != early) world.SubmitUrgently(rank, Gradient("a"));
        }
        world.MarkUrgent(early, "a");
        world.Settle(random);
        for (int rank = 0; rank < world.size(); ++rank) {
          ASSERT_FALSE(world.IsPending(rank, "a"))
              << rank << ", early: " << early;
          ASSERT_EQ(world.done(rank).back().kind, Decision::Kind::kBucket);
        }
      }
    }
  }
}

// One rank reports by an id that the others have forgotten, or by another id of
// the name.
TEST_P(ForgottenIdsTest, MismatchWithAnIdNamesTheDifference) {
  for (const bool forgotten : {true, false}) {
    SimWorld world(GetParam(), Forgetting(1000));
    const int odd = world.size() - 1;
    for (int i = 0; i < 3; ++i) {
      world.Run(Gradient("a", 16));
      if (!forgotten) world.Run(Gradient("a", 17));
    }
    world.SubmitUrgently(odd, Gradient("a", 16));
    if (forgotten) world.Release(0, "a");
    world.Settle();
    for (int rank = 0; rank < odd; ++rank) {
      world.SubmitUrgently(rank, Gradient("a", 17));
    }
    world.Settle();
    for (int rank = 0; rank < world.size(); ++rank) {
      const auto& failure = world.done(rank).back();
      ASSERT_EQ(failure.kind, Decision::Kind::kFailure);
      EXPECT_THAT(failure.message,
                  AllOf(HasSubstr("[17] on rank"),
                        HasSubstr(absl::StrCat("[16] on rank ", odd))));
    }
    world.Run(Gradient("a"));
  }
}

TEST_P(ForgottenIdsTest, AlternatingRequestsOfOneNameAreSentAsIds) {
  SimWorld world(GetParam(), Forgetting(1000));
  Traffic traffic(world);
  for (int round = 0; round < 5; ++round) {
    if (round == 2) traffic.Clear();
    for (const int elements : {1, 262'144, 7}) {
      world.Run(Gradient("a", elements));
    }
  }
  EXPECT_EQ(traffic.announced, 0);
  EXPECT_THAT(traffic.registered, IsEmpty());
  EXPECT_EQ(traffic.forgetting, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, ForgottenIdsTest,
    ::testing::Values(WorldShape{2, 1, 8}, WorldShape{3, 1, 1},
                      WorldShape{5, 2, 2}, WorldShape{7, 1, 2},
                      WorldShape{16, 4, 2}, WorldShape{64, 8, 4}),
    [](const auto& info) { return NameOf(info.param); });

TEST(IdsOfANameTest, RequestsBeyondTheIdsOfANameStayAnnounced) {
  SimWorld world({2}, SmallBuckets());
  Traffic traffic(world);
  for (int round = 0; round < 6; ++round) {
    if (round == 3) traffic.Clear();
    for (int elements = 1; elements <= 20; ++elements) {
      world.Run(Gradient("a", elements));
    }
  }
  EXPECT_EQ(traffic.announced, 3 * 4)
      << "four requests have none of the sixteen ids";
  EXPECT_THAT(traffic.registered, IsEmpty());
}

TEST(IdsOfANameTest, UnusedRequestLosesItsId) {
  SimWorld world({2}, SmallBuckets());
  Traffic traffic(world);
  for (int round = 0; round < 3; ++round) {
    for (int elements = 1; elements <= 16; ++elements) {
      world.Run(Gradient("a", elements));
    }
  }
  for (int i = 0; i < 1024; ++i) world.Run(Gradient("other"));
  traffic.Clear();
  for (int i = 0; i < 4; ++i) world.Run(Gradient("a", 99));
  EXPECT_THAT(traffic.registered, SizeIs(1));
  EXPECT_EQ(traffic.announced, 2);
  EXPECT_EQ(traffic.forgetting, 1);
}

TEST(IdsOfANameTest, RequestThatIsUsedOnceGetsNoId) {
  SimWorld world({2}, SmallBuckets());
  Traffic traffic(world);
  for (int i = 1; i < 100; ++i) {
    world.Run(Gradient("a", i));
    world.Run(Gradient(absl::StrCat("t", i)));
  }
  EXPECT_THAT(traffic.registered, IsEmpty());
}

TEST(IdsOfANameTest, RequestThatIsUsedOnceGetsNoIdWhileARankHasJoined) {
  SimWorld world({3}, SmallBuckets());
  world.Join(2);
  world.Settle();
  Traffic traffic(world);
  for (int i = 0; i < 20; ++i) {
    const Request request = Gradient(absl::StrCat("t", i));
    world.Run(request, {0, 1});
    EXPECT_THAT(world.done(0).back().tensors, ElementsAre(request.name));
    EXPECT_THAT(world.done(2).back().tensors,
                ElementsAre("(" + request.name + ")"));
  }
  EXPECT_THAT(traffic.registered, IsEmpty());
}

// A rank that does not know that the id is forgotten may still report by it.
TEST(IdsThatAreUsedAgainTest, IdIsKeptUntilEveryRankKnowsThatItIsForgotten) {
  SimWorld world({3}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({0, 1});
  const auto in_set = [&](const std::string& name) {
    world.Run(Gradient(name, 16, set), {0, 1});
  };
  Traffic traffic(world);
  for (int i = 0; i < 2; ++i) world.Run(Gradient("a"));
  ASSERT_THAT(traffic.registered, ElementsAre(0));
  traffic.Clear();
  world.Stop(2);
  world.Release(0, "a");
  for (int i = 0; i < 2; ++i) in_set("b");
  EXPECT_GT(traffic.forgetting, 0);
  EXPECT_THAT(traffic.registered, ElementsAre(1));
  // This is sent by id: the rank does not know that it is forgotten.
  world.SubmitUrgently(2, Gradient("a"));
  world.Resume(2);
  for (const int rank : {0, 1}) world.SubmitUrgently(rank, Gradient("a"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(2, "a"));
  traffic.Clear();
  for (int i = 0; i < 2; ++i) in_set("c");
  EXPECT_THAT(traffic.registered, ElementsAre(0));
}

TEST(IdsThatAreUsedAgainTest, IdsOfARemovedProcessSetAreUsedAgain) {
  SimWorld world({4}, SmallBuckets());
  Traffic traffic(world);
  for (int round = 0; round < 10; ++round) {
    const ProcessSetId set = world.AddProcessSet({1, 3});
    for (int i = 0; i < 3; ++i) world.Run(Gradient("x", 16, set), {1, 3});
    world.SubmitRemoval(set);
    world.Settle();
  }
  EXPECT_THAT(traffic.registered, ElementsAre(0));
}

// The id of a rank's last submission may stand for something else by now.
TEST(IdsThatAreUsedAgainTest, StallNamesTheLastSubmission) {
  SimWorld world({3}, SmallBuckets());
  const ProcessSetId set = world.AddProcessSet({0, 1});
  for (int i = 0; i < 3; ++i) world.Run(Gradient("mine"));
  world.Release(1, "mine");
  for (int i = 0; i < 4; ++i) world.Run(Gradient("other", 16, set), {0, 1});
  for (const int rank : {0, 1}) world.SubmitUrgently(rank, Gradient("late"));
  world.AdvanceBySteps(absl::Seconds(90), absl::Seconds(5));
  EXPECT_THAT(
      world.warnings,
      Contains(AllOf(HasSubstr("'late'"), HasSubstr("last submitted 'mine'"))));
}

TEST(ReleasedNamesTest, ReleaseByOneRankReachesAllAndCostsNoReport) {
  for (int released = 0; released < 7; ++released) {
    SimWorld world({7}, SmallBuckets());
    Traffic traffic(world);
    for (int i = 0; i < 3; ++i) world.Run(Gradient("a"));
    const int64_t sent = world.bytes_sent;
    world.Release(released, "a");
    world.Release(released, "never used");
    EXPECT_EQ(world.bytes_sent, sent);
    traffic.Clear();
    world.Run(Gradient("b"));
    EXPECT_EQ(traffic.forgetting, 6) << "once per link";
    // The others continue with it, as with a new name.
    traffic.Clear();
    for (int i = 0; i < 3; ++i) world.Run(Gradient("a"));
    EXPECT_THAT(traffic.registered, ElementsAre(0));
    // If they release it one after the other, it is forgotten once.
    traffic.Clear();
    for (int rank = 0; rank < 7; ++rank) world.Release(rank, "a");
    world.Run(Gradient("c"));
    world.Run(Gradient("c"));
    EXPECT_EQ(traffic.forgetting, 6);
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
