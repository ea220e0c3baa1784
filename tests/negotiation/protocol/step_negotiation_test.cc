// Operations whose training steps differ among ranks.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/wire_format.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;
using hvdlite::testing::SmallBuckets;
using hvdlite::testing::WorldShape;
using ::testing::HasSubstr;
using Kind = Decision::Kind;

constexpr int kTensors = 5;

std::string NameOfTensor(int i) { return absl::StrCat("t", i); }

class StepSizeTest : public ::testing::TestWithParam<WorldShape> {};

// Requests or ids are sent, and the ranks in another step are anywhere in the
// tree.
TEST_P(StepSizeTest, OperationsOfDifferentStepsFailOnEveryRank) {
  const int size = GetParam().ranks;
  for (int seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    SimWorld world(GetParam(), SmallBuckets());
    uint32_t step = 1 + random() % 3;
    for (int round = 0; round < 7; ++round) {
      const bool differs = random() % 3 == 0;
      std::vector<uint32_t> steps(size, step);
      if (differs) {
        // At least one rank is in another step, but not all.
        const size_t other = random() % size;
        for (int rank = 0; rank < size; ++rank) {
          if (random() % 3 == 0) steps[rank] += 1 + random() % 2;
        }
        steps[other] = step + 1;
        steps[(other + 1) % size] = step;
      }
      std::vector<size_t> done(size);
      for (int rank = 0; rank < size; ++rank) {
        done[rank] = world.done(rank).size();
      }
      std::vector<SimWorld::Submission> all;
      for (int i = 0; i < kTensors * size; ++i) {
        all.push_back({.rank = i % size,
                       .request = Gradient(NameOfTensor(i / size)),
                       .absent = random() % 4 == 0,
                       .step = steps[i % size]});
      }
      world.RunShuffled(std::move(all), random);
      const uint32_t last = *std::max_element(steps.begin(), steps.end());
      for (int rank = 0; rank < size; ++rank) {
        std::multiset<std::string> ended;
        for (size_t i = done[rank]; i < world.done(rank).size(); ++i) {
          const SimWorld::Done& one = world.done(rank)[i];
          EXPECT_EQ(one.kind, differs ? Kind::kFailure : Kind::kBucket)
              << "round " << round << ", seed " << seed;
          EXPECT_EQ(one.next_step, differs ? last + 1 : 0);
          EXPECT_EQ(one.number, world.done(0)[i].number);
          EXPECT_EQ(one.message, world.done(0)[i].message);
          ended.insert(one.tensors.begin(), one.tensors.end());
          ended.insert(one.absent.begin(), one.absent.end());
          EXPECT_TRUE(!differs || one.tensors.size() == 1);
        }
        EXPECT_EQ(ended.size(), size_t{kTensors});
      }
      ASSERT_FALSE(HasFailure()) << "round " << round << ", seed " << seed;
      step = last + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, StepSizeTest,
                         ::testing::Values(WorldShape{2}, WorldShape{3},
                                           WorldShape{7}, WorldShape{20, 4}),
                         [](const auto& info) { return NameOf(info.param); });

TEST(StepTest, MessageNamesTheRanksOfEachStepAndTheWrongOnes) {
  SimWorld world({5}, SmallBuckets());
  for (int rank = 0; rank < 5; ++rank) {
    world.Submit(rank, Gradient("weight"), false, rank == 3 ? 8 : 6);
  }
  world.Settle();
  ASSERT_EQ(world.done(4).size(), 1u);
  EXPECT_THAT(
      world.done(4)[0].message,
      HasSubstr(
          "the ranks are in different steps with 'weight': step 6 on "
          "ranks 0-2, 4; step 8 on rank 3; rank 3 has skipped or repeated "
          "a step: call step() or zero_grad() alike on all ranks"));
}

// The step explains it, not the shape; an operation without a step also
// differs.
TEST(StepTest, MismatchIsExplainedByTheStep) {
  for (const uint32_t step : {0, 1}) {
    SimWorld world({2}, SmallBuckets());
    world.Submit(0, Gradient("x", 3), false, step);
    world.Submit(1, Gradient("x", 4), false, 2);
    world.Settle();
    ASSERT_EQ(world.done(0).size(), 1u);
    EXPECT_THAT(world.done(0)[0].message,
                HasSubstr(step == 0 ? "none on rank 0; step 2 on rank 1"
                                    : "different steps"));
    EXPECT_EQ(world.done(0)[0].next_step, 3u);
  }
}

// The bytes that all ranks send in one round of tensors, once these have ids.
int64_t BytesOfARound(uint32_t step) {
  SimWorld world({3}, SmallBuckets());
  int64_t before = 0;
  for (int round = 0; round < 4; ++round) {
    before = world.bytes_sent;
    for (int tensor = 0; tensor < 200; ++tensor) {
      for (int rank = 0; rank < 3; ++rank) {
        world.Submit(rank, Gradient(NameOfTensor(tensor), 1), false, step);
      }
    }
    world.MarkUrgent(1, NameOfTensor(199));
    world.Settle();
    if (step != 0) ++step;
  }
  EXPECT_EQ(world.done(2).back().kind, Kind::kBucket);
  return world.bytes_sent - before;
}

TEST(StepTest, StepsTakeAFewBytesPerReport) {
  const int64_t without = BytesOfARound(0);
  const int64_t with = BytesOfARound(100'000);
  EXPECT_GT(with, without);
  EXPECT_LE(with, without + 2 * 8);  // two ranks report
}

TEST(StepTest, ReportWithFewerStepsThanIdsIsRefused) {
  SimWorld world({2}, SmallBuckets());
  for (uint32_t step = 1; step < 3; ++step) {
    for (int rank = 0; rank < 2; ++rank) {
      for (const char* name : {"a", "b"}) {
        world.Submit(rank, Gradient(name), false, step);
      }
      world.WaitForAll(rank);
    }
    world.Settle();
  }
  wire::Message message;
  wire::Ready* ready = message.mutable_report()->mutable_ready();
  AppendIds({0, 1}, ready->mutable_ids());
  AppendValues({1, 1}, ready->mutable_last_ranks());
  AppendValues({0, 0}, ready->mutable_ages());
  AppendValues({3}, ready->mutable_steps());
  EXPECT_EQ(world[0].OnMessage(1, message).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hvdlite::negotiation
