#include "negotiation/protocol/negotiator.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using hvdlite::testing::WorldShape;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NegotiatorWorldTest : public ::testing::TestWithParam<WorldShape> {};

TEST_P(NegotiatorWorldTest, EveryRankRunsTheSameBucketsWithEveryTensorOnce) {
  constexpr int kTensors = 40;
  constexpr int kSteps = 4;  // announced, registered, by id
  for (uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SimWorld world(GetParam(), SmallBuckets());
    std::vector<SimWorld::Submission> all;
    for (int i = 0; i < kTensors * world.size(); ++i) {
      const int tensor = i / world.size();
      all.push_back(
          {i % world.size(), Gradient(absl::StrCat("t", tensor), 8 + tensor)});
    }
    for (int step = 0; step < kSteps; ++step) world.RunShuffled(all, random);
    for (int rank = 0; rank < world.size(); ++rank) {
      ASSERT_EQ(world.done(rank), world.done(0)) << "rank " << rank;
    }
    int tensors = 0;
    for (size_t i = 0; i < world.done(0).size(); ++i) {
      EXPECT_EQ(world.done(0)[i].number, i + 1);
      tensors += static_cast<int>(world.done(0)[i].tensors.size());
    }
    EXPECT_EQ(tensors, kSteps * kTensors);
  }
}

TEST_P(NegotiatorWorldTest, WaitOnAnyRankStartsASmallTensor) {
  for (int waiting = 0; waiting < GetParam().ranks; ++waiting) {
    SimWorld world(GetParam(), SmallBuckets());
    std::mt19937 random(waiting);
    // The mark comes before the others have submitted, or after.
    for (const bool early : {true, false}) {
      const Request request = Gradient(early ? "early" : "late");
      world.Submit(waiting, request);
      if (early) world.MarkUrgent(waiting, request.name);
      for (int rank = 0; rank < world.size(); ++rank) {
        if (rank != waiting) world.Submit(rank, request);
      }
      world.Settle(random);
      if (!early) {
        ASSERT_TRUE(world.IsPending(0, request.name))
            << "no thread waits, and it is small";
        world.MarkUrgent(waiting, request.name);
        world.Settle(random);
      }
      for (int rank = 0; rank < world.size(); ++rank) {
        ASSERT_TRUE(world.IsIdle(rank)) << rank;
      }
    }
  }
}

TEST_P(NegotiatorWorldTest, MismatchFailsOnEveryRankWithTheSameMessage) {
  SimWorld world(GetParam(), SmallBuckets());
  const int odd = GetParam().ranks - 1;
  for (int step = 0; step < 4; ++step) {
    for (int rank = 0; rank < world.size(); ++rank) {
      world.SubmitUrgently(rank,
                           Gradient("w", rank == odd && step == 2 ? 17 : 16));
    }
    world.Settle();
  }
  for (int rank = 0; rank < world.size(); ++rank) {
    ASSERT_EQ(world.done(rank), world.done(0));
    ASSERT_THAT(world.done(rank), SizeIs(4));
  }
  EXPECT_EQ(world.done(0)[2].kind, Decision::Kind::kFailure);
  // The world stays healthy.
  EXPECT_EQ(world.done(0)[3].kind, Decision::Kind::kBucket);
  EXPECT_THAT(world.done(0)[3].tensors, ElementsAre("w"));
}

TEST_P(NegotiatorWorldTest, DepartureLetsReadyTensorsRunAndReachesEveryRank) {
  // Once with names that are used for the first time, and once with names that
  // have ids and whose reports are held back.
  for (const size_t steps : {0, 3}) {
    SimWorld world(GetParam(), SmallBuckets());
    for (size_t i = 0; i < steps; ++i) world.Run(Gradient("ready"));
    world.SubmitEverywhere(Gradient("ready"));
    for (int rank = 0; rank + 1 < world.size(); ++rank) {
      world.Submit(rank, Gradient("not on the last rank"));
    }
    const int last = world.size() - 1;
    world.Leave(last, "out of disk space");
    world.Settle();
    for (int rank = 0; rank < world.size(); ++rank) {
      ASSERT_THAT(world.done(rank), SizeIs(steps + 2)) << rank;
      EXPECT_THAT(world.done(rank)[steps].tensors, ElementsAre("ready"));
      EXPECT_EQ(world.done(rank)[steps + 1].kind, Decision::Kind::kDeparture);
      EXPECT_THAT(world.done(rank)[steps + 1].message,
                  HasSubstr("out of disk space"));
    }
    for (int rank = 0; rank < world.size(); ++rank) world.Leave(rank, "end");
    world.Settle();
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_EQ(world.done(rank).back().kind, Decision::Kind::kShutdown);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, NegotiatorWorldTest,
    ::testing::Values(WorldShape{2, 1, 2}, WorldShape{2, 2, 8},
                      WorldShape{3, 1, 1}, WorldShape{4, 2, 2},
                      WorldShape{7, 3, 2}, WorldShape{8, 8, 2},
                      WorldShape{16, 4, 8}, WorldShape{33, 8, 3},
                      WorldShape{64, 8, 4}, WorldShape{64, 1, 31}),
    [](const auto& info) { return NameOf(info.param); });

// The answer to a second question might come after the shutdown.
TEST(NegotiatorTest, RanksThatLeaveTogetherAreAskedOnce) {
  SimWorld world({6}, SmallBuckets());
  world.on_send = [](const std::string& bytes) {
    wire::Message message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_LE(message.directive().probe().number(), 1u);
  };
  for (int rank = 0; rank < world.size(); ++rank) world.Leave(rank, "end");
  world.Settle();
  EXPECT_EQ(world.done(0).back().kind, Decision::Kind::kShutdown);
}

TEST(NegotiatorTest, WorldOfOneDecidesImmediately) {
  SimWorld world({1}, SmallBuckets());
  world.Submit(0, Gradient("a"));
  world.Settle();
  EXPECT_THAT(world.done(0), IsEmpty());
  world.MarkUrgent(0, "a");
  world.Settle();
  ASSERT_THAT(world.done(0), SizeIs(1));
  EXPECT_EQ(world.bytes_sent, 0);
}

TEST(NegotiatorTest, BucketStartsWithoutAWaiterOnceEnoughIsReady) {
  SimWorld world({2}, SmallBuckets());
  world.SubmitEverywhere(Gradient("a", 255));  // 1020 bytes
  world.Settle();
  EXPECT_THAT(world.done(1), IsEmpty());
  world.SubmitEverywhere(Gradient("b", 1));  // 1024
  world.Settle();
  ASSERT_THAT(world.done(1), SizeIs(1));
  EXPECT_THAT(world.done(1)[0].tensors, ElementsAre("a", "b"));
}

TEST(NegotiatorTest, SteadyStateCarriesIdsNotNames) {
  SimWorld world({4}, SmallBuckets());
  const std::string name = "layer4.2.conv3.weight";
  int with_name = 0;
  world.on_send = [&](const std::string& bytes) {
    with_name += absl::StrContains(bytes, name);
  };
  const auto step = [&] {
    with_name = 0;
    world.bytes_sent = 0;
    world.Run(Gradient(name));
  };
  step();
  EXPECT_GT(with_name, 0);
  step();
  EXPECT_GT(with_name, 0) << "it is registered the second time";
  for (int i = 0; i < 3; ++i) {
    step();
    EXPECT_EQ(with_name, 0);
    EXPECT_LT(world.bytes_sent, 200);
  }
  EXPECT_THAT(world.done(3), SizeIs(5));
}

TEST(NegotiatorTest, ChangedShapeGetsANewRegistration) {
  SimWorld world({3}, SmallBuckets());
  for (const int64_t elements : {4, 4, 4, 5, 5, 4, 6, 6, 6}) {
    world.Run(Gradient("w", elements));
  }
  EXPECT_THAT(world.done(2), SizeIs(9));
  EXPECT_EQ(world.done(2), world.done(0));
  for (const auto& done : world.done(2)) {
    EXPECT_EQ(done.kind, Decision::Kind::kBucket);
  }
}

TEST(NegotiatorTest, MismatchMessagesNameThePropertyAndBothSides) {
  struct Case {
    void (*change)(Request&);
    const char* text;
  };
  for (const auto& [change, text] : std::vector<Case>{
           {[](Request& r) { r.tensors[0].shape = {17}; },
            "the shape of 'w': [16] on ranks 0-1, 3; [17] on rank 2"},
           {[](Request& r) {
              r.tensors[0].dtype = collective::DataType::kFloat64;
            },
            "the dtype of 'w': float32 on ranks 0-1, 3; float64 on rank 2"},
           {[](Request& r) { r.average = false; },
            "the op of 'w': average on ranks 0-1, 3; sum on rank 2"},
           {[](Request& r) { r.collective = Collective::kBroadcast; },
            "the operation of 'w': allreduce on ranks 0-1, 3; broadcast on "
            "rank 2"},
           {[](Request& r) { r.root_rank = 3; },
            "the root rank of 'w': 0 on ranks 0-1, 3; 3 on rank 2"},
           {[](Request& r) { r.prescale_factor = 0.5; },
            "the prescale factor of 'w': 1 on ranks 0-1, 3; 0.5 on rank 2"},
           {[](Request& r) { r.postscale_factor = 0.5; },
            "the postscale factor of 'w': 1 on ranks 0-1, 3; 0.5 on rank 2"},
           {[](Request& r) {
              r.compression = collective::Compression::kFloat16;
            },
            "the compression of 'w': none on ranks 0-1, 3; fp16 on rank 2"},
           {[](Request& r) {
              r.compression = collective::Compression::kBFloat16;
            },
            "the compression of 'w': none on ranks 0-1, 3; bf16 on rank 2"},
           {[](Request& r) { r.tensors.push_back(r.tensors[0]); },
            "the number of tensors of 'w': 1 on ranks 0-1, 3; 2 on rank 2"},
           {[](Request& r) { r.tensors[0].strides = {2}; },
            "the memory layout (strides) of 'w': row-major on ranks 0-1, 3; "
            "[2] on rank 2"},
           {[](Request& r) { r.local_error = "no room"; },
            "'w' cannot be done on rank 2: no room"}}) {
    SCOPED_TRACE(text);
    SimWorld world({4}, SmallBuckets());
    for (int rank = 0; rank < 4; ++rank) {
      Request request = Gradient("w");
      if (rank == 2) change(request);
      world.Submit(rank, request);
    }
    world.Settle();
    ASSERT_THAT(world.done(3), SizeIs(1));
    EXPECT_EQ(world.done(3)[0].kind, Decision::Kind::kFailure);
    EXPECT_THAT(world.done(3)[0].message, HasSubstr(text));
  }
}

TEST(NegotiatorTest, OnlyMatchingTensorsShareABucket) {
  SimWorld world({2}, SmallBuckets());
  Request doubled = Gradient("doubled");
  doubled.prescale_factor = 2;
  Request broadcast = Gradient("broadcast");
  broadcast.collective = Collective::kBroadcast;
  broadcast.average = false;
  Request indices = broadcast;
  indices.name = "broadcast of another dtype";
  indices.tensors[0].dtype = collective::DataType::kInt64;
  for (const Request& request :
       {Gradient("a"), doubled, broadcast, Gradient("b"), indices}) {
    world.SubmitEverywhere(request);
    world.MarkUrgent(0, request.name);
  }
  std::mt19937 random(5);
  world.Settle(random);
  EXPECT_EQ(world.done(0), world.done(1));
  std::vector<std::vector<std::string>> buckets;
  for (const auto& done : world.done(0)) buckets.push_back(done.tensors);
  for (const auto& bucket : buckets) {
    const bool broadcasts = absl::StartsWith(bucket.front(), "broadcast");
    for (const std::string& name : bucket) {
      EXPECT_EQ(absl::StartsWith(name, "broadcast"), broadcasts);
      if (name == "doubled") {
        EXPECT_THAT(bucket, SizeIs(1));
      }
    }
  }
}

TEST(NegotiatorTest, AbsentOnAllRanksEndsWithoutReductionAndGetsAnId) {
  SimWorld world({3}, SmallBuckets());
  int with_name = 0;
  world.on_send = [&](const std::string& bytes) {
    with_name += absl::StrContains(bytes, "unused");
  };
  for (int step = 0; step < 3; ++step) {
    with_name = 0;
    for (int rank = 0; rank < 3; ++rank) {
      world.Submit(rank, Gradient("unused"), /*absent=*/true);
      world.Submit(rank, Gradient("used by rank 1"), /*absent=*/rank != 1);
      world.WaitForAll(rank);
    }
    world.Settle();
    EXPECT_EQ(with_name > 0, step < 2) << step;
  }
  std::vector<std::string> reduced, absent;
  for (const auto& done : world.done(2)) {
    reduced.insert(reduced.end(), done.tensors.begin(), done.tensors.end());
    absent.insert(absent.end(), done.absent.begin(), done.absent.end());
  }
  EXPECT_THAT(reduced, ElementsAre("used by rank 1", "used by rank 1",
                                   "used by rank 1"));
  EXPECT_THAT(absent, ElementsAre("unused", "unused", "unused"));
  EXPECT_EQ(world.done(2), world.done(0));
}

TEST(NegotiatorTest, LateUrgentMarkDoesNotAffectTheNextInstance) {
  SimWorld world({2}, SmallBuckets());
  for (int i = 0; i < 2; ++i) world.Run(Gradient("w"));  // it has an id now
  // Rank 0 decides before rank 1's mark arrives.
  world.SubmitEverywhere(Gradient("w"));
  world.MarkUrgent(0, "w");
  world.Settle();
  ASSERT_FALSE(world.IsPending(0, "w"));
  wire::Message late;
  late.mutable_report()->add_urgent_ids(0);
  ASSERT_TRUE(world[0].OnMessage(1, late).ok());
  world[0].Submit(Gradient("w"), false, 1000);
  EXPECT_FALSE(world[0].NextDecision().has_value());
}

TEST(NegotiatorTest, MessagesThatViolateTheProtocolAreRefused) {
  SimWorld world({3}, SmallBuckets());
  wire::Message report;
  AppendIds({7}, report.mutable_report()->mutable_ready()->mutable_ids());
  AppendValues({1},
               report.mutable_report()->mutable_ready()->mutable_last_ranks());
  EXPECT_FALSE(world[0].OnMessage(1, report).ok());
  report.Clear();
  AppendIds({7}, report.mutable_report()->mutable_urgent_ids());
  EXPECT_FALSE(world[0].OnMessage(1, report).ok());
  wire::Message directive;
  directive.mutable_directive()->add_decisions()->set_number(5);
  EXPECT_FALSE(world[1].OnMessage(0, directive).ok());
  EXPECT_FALSE(world[0].OnMessage(1, directive).ok());
  EXPECT_FALSE(world[0].OnMessage(2, wire::Message()).ok());

  wire::Message joined;
  joined.mutable_report()->add_joined(2);
  EXPECT_FALSE(world[0].OnMessage(1, joined).ok());
  wire::Message announced;
  wire::Announcement* const announcement =
      announced.mutable_report()->add_announced();
  ToWire(Gradient("w"), announcement->mutable_request());
  announcement->mutable_ranks()->set_unnamed(1);
  EXPECT_FALSE(world[0].OnMessage(1, announced).ok());
  const auto refuses_bucket = [](auto change) {
    SimWorld fresh({2}, SmallBuckets());
    wire::Message message;
    wire::Decision* decision = message.mutable_directive()->add_decisions();
    decision->set_number(1);
    change(decision->mutable_bucket());
    return !fresh[1].OnMessage(0, message).ok();
  };
  EXPECT_TRUE(
      refuses_bucket([](wire::Bucket* bucket) { bucket->set_joined(2); }));
  EXPECT_TRUE(refuses_bucket([](wire::Bucket* bucket) {
    bucket->add_registered()->set_id(0xffffffff);
  }));
  EXPECT_TRUE(
      refuses_bucket([](wire::Bucket* bucket) { bucket->set_process_set(3); }));
}

// No rank of this version joins while it has something pending.
TEST(NegotiatorTest, MismatchDoesNotNameARankThatJoinsAfterItsReport) {
  SimWorld world({2}, SmallBuckets());
  for (int i = 0; i < 2; ++i) world.Run(Gradient("w"));  // it has an id now
  wire::Message ready;
  AppendIds({0}, ready.mutable_report()->mutable_ready()->mutable_ids());
  AppendValues({1},
               ready.mutable_report()->mutable_ready()->mutable_last_ranks());
  AppendValues({0}, ready.mutable_report()->mutable_ready()->mutable_ages());
  ASSERT_TRUE(world[0].OnMessage(1, ready).ok());
  wire::Message joined;
  joined.mutable_report()->add_joined(1);
  ASSERT_TRUE(world[0].OnMessage(1, joined).ok());
  world[0].Submit(Gradient("w", 17), /*absent=*/false, /*token=*/1000,
                  /*hint=*/nullptr, std::nullopt, /*step=*/3);
  EXPECT_FALSE(world[0].OnMessage(1, ready).ok());  // it does not take part
}

// The caller of a negotiator plans again only if it is touched. A failure
// leaves the root's data plane idle for the operations that gathered meanwhile.
TEST(NegotiatorTest, OperationsReadyDuringAFailureArePlannedAfterIt) {
  Negotiator::Options options = SmallBuckets();
  options.rank = 0;
  options.layout = std::make_shared<WorldLayout>(
      std::vector<int>{0}, std::vector<std::string>{"host0"});
  Negotiator alone(options);
  Request refused = Gradient("refused");
  refused.local_error = "unsupported";
  alone.Submit(refused, /*absent=*/false, /*token=*/0, /*hint=*/nullptr);
  alone.Plan();
  alone.Submit(Gradient("ready"), /*absent=*/false, /*token=*/1,
               /*hint=*/nullptr);
  alone.MarkUrgent("ready");
  alone.Plan();
  alone.TakeOutgoing();
  ASSERT_FALSE(alone.Plan());

  const std::optional<Decision> failure = alone.NextDecision();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, Decision::Kind::kFailure);
  EXPECT_TRUE(alone.Plan());
  const std::optional<Decision> bucket = alone.NextDecision();
  ASSERT_TRUE(bucket.has_value());
  EXPECT_EQ(bucket->kind, Decision::Kind::kBucket);
}

}  // namespace
}  // namespace hvdlite::negotiation
