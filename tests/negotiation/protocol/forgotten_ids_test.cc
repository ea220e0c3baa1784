// Ids that are forgotten and used again, also while reports by them are on
// their way; and names with several ids.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/fakes/gradient_request.h"
#include "tests/testing/worlds/lockstep_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::LockstepWorld;
using hvdlite::testing::SmallBatches;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What ranks have told each other since Clear().
struct Traffic {
  explicit Traffic(LockstepWorld& world) {
    world.on_send = [this](const std::string& bytes) { Add(bytes); };
  }

  void Add(const std::string& bytes) {
    wire::Message message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    announced += message.report().announced_size();
    for (const wire::Decision& decision : message.directive().decisions()) {
      if (decision.has_forgotten()) ++forgetting;
      for (const auto& registration : decision.batch().registered()) {
        registered.insert(registration.id());
      }
      for (const auto& registration : decision.batch().absent_registered()) {
        registered.insert(registration.id());
      }
    }
  }
  void Clear() {
    announced = forgetting = 0;
    registered.clear();
  }

  int announced = 0;
  int forgetting = 0;  // decisions, once for each link
  std::set<uint32_t> registered;
};

void SubmitAndWait(LockstepWorld& world, int rank, const Request& request) {
  world.Submit(rank, request);
  world.MarkUrgent(rank, request.name);
}

// All ranks run it, and wait for it.
void RunEverywhere(LockstepWorld& world, const Request& request) {
  for (int rank = 0; rank < world.size(); ++rank) {
    SubmitAndWait(world, rank, request);
  }
  world.Settle();
  for (int rank = 0; rank < world.size(); ++rank) {
    ASSERT_FALSE(world.IsPending(rank, request.name)) << rank;
  }
}

struct ForgettingWorld {
  int ranks;
  int ranks_per_host;
  int arity;
};

class ForgottenIdsTest : public ::testing::TestWithParam<ForgettingWorld> {
 protected:
  static LockstepWorld Make(uint64_t max_idle_uses) {
    Negotiator::Options options = SmallBatches();
    options.tree_arity = GetParam().arity;
    options.max_idle_uses = max_idle_uses;
    return LockstepWorld(GetParam().ranks, options, GetParam().ranks_per_host);
  }
};

// Ids live for one use or a few, names stand for several requests in turn, and
// ranks release names at any time, each for itself. Every rank submits in an
// order of its own, with messages in between.
TEST_P(ForgottenIdsTest, EveryRankDoesTheSameWhateverIsForgottenMeanwhile) {
  constexpr int kNames = 6;
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    LockstepWorld world = Make(3 + seed % 4 * 2);
    Traffic traffic(world);
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<Request>> orders(world.size());
      for (auto& order : orders) {
        for (int i = 0; i < kNames; ++i) {
          order.push_back(Gradient(absl::StrCat("t", i),
                                   8 + i + (round * i) % 2 * 100));
        }
        std::shuffle(order.begin(), order.end(), random);
      }
      const auto move = [&] {
        for (uint32_t i = random() % 4; i > 0; --i) world.Step(random);
        if (random() % 8 == 0) {
          world.Release(static_cast<int>(random() % world.size()),
                        absl::StrCat("t", random() % kNames));
        }
      };
      std::vector<size_t> submitted(world.size(), 0);
      for (int left = kNames * world.size(); left > 0;) {
        const int rank = static_cast<int>(random() % world.size());
        if (submitted[rank] == kNames) continue;
        world.Submit(rank, orders[rank][submitted[rank]++]);
        --left;
        move();
      }
      for (int rank = 0; rank < world.size(); ++rank) {
        for (const Request& request : orders[rank]) {
          if (!world.IsPending(rank, request.name)) continue;
          world.MarkUrgent(rank, request.name);
          move();
        }
      }
      world.Settle(random);
      for (int rank = 0; rank < world.size(); ++rank) {
        ASSERT_EQ(world.done(rank), world.done(0)) << "rank " << rank;
        ASSERT_FALSE(world[rank].has_work()) << "rank " << rank;
      }
    }
    int tensors = 0;
    for (const auto& done : world.done(0)) {
      ASSERT_EQ(done.kind, Decision::Kind::kBatch) << done.message;
      tensors += static_cast<int>(done.tensors.size());
    }
    EXPECT_EQ(tensors, 10 * kNames);
    EXPECT_GT(traffic.forgetting, 0) << "nothing was forgotten";
    EXPECT_THAT(traffic.registered, SizeIs(::testing::Lt(40u)))
        << "ids are used again";
  }
}

// The same while ranks join, and learn by full requests what they take part in.
TEST_P(ForgottenIdsTest, RanksThatHaveJoinedForgetLikeTheOthers) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    LockstepWorld world = Make(2);
    const int size = world.size();
    for (int round = 0; round < 6; ++round) {
      const int joined = static_cast<int>(random() % size);
      const int when = static_cast<int>(random() % 5);
      for (int i = 0; i < 5; ++i) {
        if (i == when) world.Join(joined);
        for (int rank = 0; rank < size; ++rank) {
          if (i >= when && rank == joined) continue;
          SubmitAndWait(world, rank,
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
          ASSERT_EQ(world.done(rank).back().kind, Decision::Kind::kBatch);
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

// Each rank in turn reports by an id that has just been forgotten; those that
// have heard of it announce what they submit.
TEST_P(ForgottenIdsTest, ReportThatCrossesTheDecisionIsUnderstood) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (const bool coalesced : {false, true}) {
      for (int early = 1; early < GetParam().ranks;
           early += std::max(1, GetParam().ranks / 8)) {
        std::mt19937 random(seed);
        LockstepWorld world = Make(1000);
        for (int i = 0; i < 3; ++i) RunEverywhere(world, Gradient("a"));
        world[0].Release("a");
        world[0].Plan();  // decided, and not sent
        world.Submit(early, Gradient("a"));
        if (!coalesced) world.MarkUrgent(early, "a");
        world.Submit(0, Gradient("a"));  // sends the decision, too
        world.Settle(random);
        for (int rank = 1; rank < world.size(); ++rank) {
          if (rank != early) SubmitAndWait(world, rank, Gradient("a"));
        }
        world.MarkUrgent(early, "a");
        world.Settle(random);
        for (int rank = 0; rank < world.size(); ++rank) {
          ASSERT_FALSE(world.IsPending(rank, "a"))
              << rank << ", early: " << early;
          ASSERT_EQ(world.done(rank).back().kind, Decision::Kind::kBatch);
        }
      }
    }
  }
}

TEST_P(ForgottenIdsTest, MismatchWithAForgottenIdNamesTheDifference) {
  LockstepWorld world = Make(1000);
  const int early = world.size() - 1;
  for (int i = 0; i < 3; ++i) RunEverywhere(world, Gradient("a"));
  world.Submit(early, Gradient("a", 16));
  world.MarkUrgent(early, "a");
  world.Release(0, "a");
  world.Settle();
  for (int rank = 0; rank < early; ++rank) {
    SubmitAndWait(world, rank, Gradient("a", 17));
  }
  world.Settle();
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto& failure = world.done(rank).back();
    ASSERT_EQ(failure.kind, Decision::Kind::kFailure);
    EXPECT_THAT(failure.message,
                AllOf(HasSubstr("shape of 'a'"), HasSubstr("[17] on rank"),
                      HasSubstr(absl::StrCat("[16] on rank ", early))));
  }
  RunEverywhere(world, Gradient("a"));
}

TEST_P(ForgottenIdsTest, MismatchOfTwoIdsNamesTheDifference) {
  LockstepWorld world = Make(1000);
  const int odd = world.size() - 1;
  for (int i = 0; i < 2; ++i) {
    for (const int elements : {16, 17}) {
      RunEverywhere(world, Gradient("a", elements));
    }
  }
  Traffic traffic(world);
  for (int rank = 0; rank < world.size(); ++rank) {
    SubmitAndWait(world, rank, Gradient("a", rank == odd ? 17 : 16));
  }
  world.Settle();
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto& failure = world.done(rank).back();
    ASSERT_EQ(failure.kind, Decision::Kind::kFailure);
    EXPECT_THAT(failure.message,
                AllOf(HasSubstr("shape of 'a'"), HasSubstr("[16] on rank"),
                      HasSubstr(absl::StrCat("[17] on rank ", odd))));
  }
  RunEverywhere(world, Gradient("a", 17));
}

TEST_P(ForgottenIdsTest, RequestsThatTakeTurnsUnderOneNameTravelAsIds) {
  LockstepWorld world = Make(1000);
  Traffic traffic(world);
  for (int round = 0; round < 5; ++round) {
    if (round == 2) traffic.Clear();
    for (const int elements : {1, 262'144, 7}) {
      RunEverywhere(world, Gradient("a", elements));
    }
  }
  EXPECT_EQ(traffic.announced, 0);
  EXPECT_THAT(traffic.registered, IsEmpty());
  EXPECT_EQ(traffic.forgetting, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, ForgottenIdsTest,
    ::testing::Values(ForgettingWorld{2, 1, 8}, ForgettingWorld{3, 1, 1},
                      ForgettingWorld{5, 2, 2}, ForgettingWorld{7, 1, 2},
                      ForgettingWorld{16, 4, 2}, ForgettingWorld{64, 8, 4}));

Negotiator::Options ForgetOptions(int arity, uint64_t max_idle_uses = 32768) {
  Negotiator::Options options = SmallBatches();
  options.tree_arity = arity;
  options.max_idle_uses = max_idle_uses;
  return options;
}

TEST(IdsOfANameTest, MoreRequestsThanOneNameGetsIdsForStayAnnounced) {
  LockstepWorld world(2, ForgetOptions(2));
  Traffic traffic(world);
  for (int round = 0; round < 6; ++round) {
    if (round == 3) traffic.Clear();
    for (int elements = 1; elements <= 20; ++elements) {
      RunEverywhere(world, Gradient("a", elements));
    }
  }
  EXPECT_EQ(traffic.announced, 3 * 4) << "four have none of the sixteen ids";
  EXPECT_THAT(traffic.registered, IsEmpty());
}

TEST(IdsOfANameTest, RequestThatWasNotUsedForAWhileGivesItsIdUp) {
  LockstepWorld world(2, ForgetOptions(2));
  Traffic traffic(world);
  for (int round = 0; round < 3; ++round) {
    for (int elements = 1; elements <= 16; ++elements) {
      RunEverywhere(world, Gradient("a", elements));
    }
  }
  for (int i = 0; i < 1024; ++i) RunEverywhere(world, Gradient("other"));
  traffic.Clear();
  for (int i = 0; i < 4; ++i) RunEverywhere(world, Gradient("a", 99));
  EXPECT_THAT(traffic.registered, SizeIs(1));
  EXPECT_EQ(traffic.announced, 2);
  EXPECT_EQ(traffic.forgetting, 1);
}

TEST(IdsOfANameTest, WhatIsUsedOnceGetsNoId) {
  LockstepWorld world(2, ForgetOptions(2));
  Traffic traffic(world);
  for (int i = 1; i < 100; ++i) {
    RunEverywhere(world, Gradient("a", i));
    RunEverywhere(world, Gradient(absl::StrCat("t", i)));
  }
  EXPECT_THAT(traffic.registered, IsEmpty());
}

TEST(IdsOfANameTest, WhatIsUsedOnceWhileARankHasJoinedGetsNoId) {
  LockstepWorld world(3, ForgetOptions(2));
  world.Join(2);
  world.Settle();
  Traffic traffic(world);
  for (int i = 0; i < 20; ++i) {
    const Request request = Gradient(absl::StrCat("t", i));
    for (const int rank : {0, 1}) SubmitAndWait(world, rank, request);
    world.Settle();
    EXPECT_THAT(world.done(0).back().tensors, ElementsAre(request.name));
    EXPECT_THAT(world.done(2).back().tensors,
                ElementsAre("(" + request.name + ")"));
  }
  EXPECT_THAT(traffic.registered, IsEmpty());
}

// A rank that has not heard that the id is forgotten may still report by it.
TEST(IdsThatAreUsedAgainTest, IdIsKeptUntilEveryRankHasHeardThatItIsForgotten) {
  LockstepWorld world(3, ForgetOptions(2));
  const ProcessSetId set = world.AddProcessSet({0, 1});
  const auto in_set = [&](const std::string& name) {
    Request request = Gradient(name);
    request.process_set = set;
    for (const int rank : {0, 1}) SubmitAndWait(world, rank, request);
    world.Settle();
  };
  Traffic traffic(world);
  for (int i = 0; i < 2; ++i) RunEverywhere(world, Gradient("a"));
  ASSERT_THAT(traffic.registered, ElementsAre(0));
  traffic.Clear();
  world.Stop(2);
  world.Release(0, "a");
  for (int i = 0; i < 2; ++i) in_set("b");
  EXPECT_GT(traffic.forgetting, 0);
  EXPECT_THAT(traffic.registered, ElementsAre(1));
  world.Submit(2, Gradient("a"));  // by id: it has not heard of anything
  world.MarkUrgent(2, "a");
  world.Resume(2);
  for (const int rank : {0, 1}) SubmitAndWait(world, rank, Gradient("a"));
  world.Settle();
  EXPECT_FALSE(world.IsPending(2, "a"));
  traffic.Clear();
  for (int i = 0; i < 2; ++i) in_set("c");
  EXPECT_THAT(traffic.registered, ElementsAre(0));
}

TEST(IdsThatAreUsedAgainTest, IdsOfARemovedProcessSetAre) {
  LockstepWorld world(4, ForgetOptions(2));
  Traffic traffic(world);
  for (int round = 0; round < 10; ++round) {
    Request add;
    add.name = "add";
    add.collective = Collective::kAddProcessSet;
    add.members = {1, 3};
    world.SubmitEverywhere(add);
    world.Settle();
    const ProcessSetId set = static_cast<ProcessSetId>(round + 1);
    for (int i = 0; i < 3; ++i) {
      for (const int rank : {1, 3}) {
        Request request = Gradient("x");
        request.process_set = set;
        SubmitAndWait(world, rank, request);
      }
      world.Settle();
    }
    Request remove;
    remove.name = "remove";
    remove.collective = Collective::kRemoveProcessSet;
    remove.removed = set;
    world.SubmitEverywhere(remove);
    world.Settle();
  }
  EXPECT_THAT(traffic.registered, ElementsAre(0));
}

// The id of what a rank submitted last may stand for something else by now.
TEST(IdsThatAreUsedAgainTest, StallTellsTheNameThatWasSubmittedLast) {
  LockstepWorld world(3, ForgetOptions(2));
  const ProcessSetId set = world.AddProcessSet({0, 1});
  for (int i = 0; i < 3; ++i) RunEverywhere(world, Gradient("mine"));
  world.Release(1, "mine");
  Request other = Gradient("other");
  other.process_set = set;
  for (int i = 0; i < 4; ++i) {
    for (const int rank : {0, 1}) SubmitAndWait(world, rank, other);
    world.Settle();
  }
  for (const int rank : {0, 1}) SubmitAndWait(world, rank, Gradient("late"));
  world.AdvanceBySteps(absl::Seconds(90), absl::Seconds(5));
  EXPECT_THAT(world.warnings,
              Contains(AllOf(HasSubstr("'late'"),
                             HasSubstr("last submitted 'mine'"))));
}

TEST(ReleasedNamesTest, ReleaseByOneRankReachesAllAndCostsNoReport) {
  for (int released = 0; released < 7; ++released) {
    LockstepWorld world(7, ForgetOptions(2));
    Traffic traffic(world);
    for (int i = 0; i < 3; ++i) RunEverywhere(world, Gradient("a"));
    const int64_t sent = world.bytes_sent;
    world.Release(released, "a");
    world.Release(released, "never used");
    EXPECT_EQ(world.bytes_sent, sent);
    traffic.Clear();
    RunEverywhere(world, Gradient("b"));
    EXPECT_EQ(traffic.forgetting, 6) << "once for each link";
    // The others go on with it, as with a name that is new.
    traffic.Clear();
    for (int i = 0; i < 3; ++i) RunEverywhere(world, Gradient("a"));
    EXPECT_THAT(traffic.registered, ElementsAre(0));
    // When they release it one after the other, it is forgotten once.
    traffic.Clear();
    for (int rank = 0; rank < 7; ++rank) world.Release(rank, "a");
    RunEverywhere(world, Gradient("c"));
    RunEverywhere(world, Gradient("c"));
    EXPECT_EQ(traffic.forgetting, 6);
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
