#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/engine/operation.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::BytesOf;
using hvdlite::testing::CoordinatedWorld;
using hvdlite::testing::Sum;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Values = std::vector<float>;

// The operation is in place, and its memory has no owner.
absl::Status SubmitAndWait(Coordinator& coordinator,
                           const PersistentPtr& persistent) {
  absl::Status status =
      coordinator.SubmitPersistent({persistent}, /*caller_waits=*/true);
  return status.ok() ? coordinator.Wait(*persistent) : status;
}

absl::Status Load(const PersistentPtr& persistent, Operation next) {
  return persistent->Load(next.request, next.absent, std::move(next.inputs),
                          std::move(next.outputs), std::move(next.keep_alive));
}

class PersistentOperationSizeTest : public ::testing::TestWithParam<int> {};

TEST_P(PersistentOperationSizeTest, IsReducedAtEverySubmission) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 2000;
  options.config.fusion_threshold_bytes = 8000;
  CoordinatedWorld world(GetParam(), options);
  world.OnEveryRank([&](int rank) {
    constexpr int kTensors = 40;
    std::mt19937 random(rank);
    std::vector<Values> values(kTensors);
    std::vector<PersistentPtr> persistent;
    for (int i = 0; i < kTensors; ++i) {
      values[i].resize(1 + i * 3);
      persistent.push_back(
          world[rank]
              .MakePersistent(Sum(absl::StrCat("t", i), values[i]))
              .value());
      EXPECT_TRUE(persistent.back()->done());
    }
    for (int step = 0; step < 12; ++step) {
      for (int i = 0; i < kTensors; ++i) {
        // Every step uses new memory.
        values[i] = Values(1 + i * 3, static_cast<float>(i + step));
        ASSERT_TRUE(
            Load(persistent[i], Sum(absl::StrCat("t", i), values[i])).ok());
      }
      std::vector<PersistentPtr> order = persistent;
      std::shuffle(order.begin(), order.end(), random);
      // Some are submitted alone, as by hooks, the rest together.
      const size_t alone = random() % kTensors;
      for (size_t i = 0; i < alone; ++i) {
        ASSERT_TRUE(world[rank].SubmitPersistent({order[i]}, false).ok());
      }
      ASSERT_TRUE(
          world[rank]
              .SubmitPersistent(absl::MakeSpan(order).subspan(alone), false)
              .ok());
      for (auto one = order.rbegin(); one != order.rend(); ++one) {
        ASSERT_TRUE(world[rank].Wait(**one).ok());
      }
      for (int i = 0; i < kTensors; ++i) {
        ASSERT_THAT(values[i],
                    Each(static_cast<float>((i + step) * GetParam())))
            << "step " << step;
      }
    }
  });
}

TEST_P(PersistentOperationSizeTest, MatchesOrdinaryOperationsOfOtherRanks) {
  CoordinatedWorld world(GetParam());
  world.OnEveryRank([&](int rank) {
    Values values(3);
    PersistentPtr persistent;
    if (rank == 0)
      persistent = world[rank].MakePersistent(Sum("x", values)).value();
    for (int step = 0; step < 5; ++step) {
      values.assign(3, 1);
      if (rank == 0) {
        ASSERT_TRUE(SubmitAndWait(world[rank], persistent).ok());
      } else {
        const auto completion = world[rank].Submit(Sum("x", values));
        ASSERT_TRUE(world[rank].Wait(**completion).ok());
      }
      ASSERT_THAT(values, Each(static_cast<float>(GetParam())));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, PersistentOperationSizeTest,
                         ::testing::Values(1, 2, 3, 8));

TEST(PersistentOperationTest, ReportsAbsenceForEachSubmission) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values values(2, 1), result(2);
    const PersistentPtr persistent =
        world[rank].MakePersistent(Sum("x", values)).value();
    for (int step = 0; step < 8; ++step) {
      const bool all = step % 4 >= 2;
      const bool absent = all || (step % 2 == 0 && rank == 1);
      values.assign(2, 1);
      result.assign(2, -1);
      Operation next = Sum("x", values);
      next.outputs = {BytesOf(result)};
      next.absent = absent;
      if (absent) next.inputs.clear();
      ASSERT_TRUE(Load(persistent, std::move(next)).ok());
      ASSERT_TRUE(SubmitAndWait(world[rank], persistent).ok());
      EXPECT_EQ(persistent->absent_everywhere(), all);
      EXPECT_THAT(result, Each(all ? -1 : step % 2 == 0 ? 1 : 2)) << step;
    }
  });
}

TEST(PersistentOperationTest, RunsDoneEachTimeAndOwnsItsMemory) {
  CoordinatedWorld world(1);
  Values values(1, 1);
  int done = 0;
  auto owner = std::make_shared<int>();
  Operation operation = Sum("x", values);
  operation.done = [&](const absl::Status&) { ++done; };
  operation.keep_alive = owner;
  PersistentPtr persistent =
      world[0].MakePersistent(std::move(operation)).value();
  for (int step = 1; step < 4; ++step) {
    ASSERT_TRUE(SubmitAndWait(world[0], persistent).ok());
    EXPECT_EQ(done, step);
    EXPECT_EQ(owner.use_count(), 2);
  }
  persistent->Release();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(world[0].SubmitPersistent({persistent}, false).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Load(persistent, Sum("x", values)).ok());
  EXPECT_TRUE(SubmitAndWait(world[0], persistent).ok());
}

TEST(PersistentOperationTest, MemoryOfTheWrongSizeIsRefused) {
  CoordinatedWorld world(1);
  Values values(2, 1), small(1, 1);
  const PersistentPtr persistent =
      world[0].MakePersistent(Sum("x", values)).value();
  Operation wrong = Sum("x", values);
  wrong.inputs = {BytesOf(small)};
  EXPECT_EQ(Load(persistent, std::move(wrong)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(world[0].SubmitPersistent({persistent}, false).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Load(persistent, Sum("x", values)).ok());
  EXPECT_TRUE(SubmitAndWait(world[0], persistent).ok());
}

TEST(PersistentOperationTest, IsNotSubmittedTogetherWithAPendingOne) {
  Values x(1, 1), y(1, 1), x1(1, 1), y1(1, 1);
  CoordinatedWorld world(2);
  const PersistentPtr first = world[0].MakePersistent(Sum("x", x)).value();
  const PersistentPtr second = world[0].MakePersistent(Sum("y", y)).value();
  ASSERT_TRUE(world[0].SubmitPersistent({second}, false).ok());
  for (const auto& all : {std::vector<PersistentPtr>{first, second},
                          std::vector<PersistentPtr>{first, first}}) {
    const absl::Status status = world[0].SubmitPersistent(all, false);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("persistent operation is still pending"),
                      HasSubstr("wait for it")));
    EXPECT_TRUE(first->done());
  }
  ASSERT_TRUE(world[0].SubmitPersistent({first}, false).ok());
  ASSERT_TRUE(world[1].Submit(Sum("y", y1)).ok());
  ASSERT_TRUE(world[1].Submit(Sum("x", x1)).ok());
  EXPECT_TRUE(world[0].Wait(*first).ok());
  EXPECT_TRUE(world[0].Wait(*second).ok());
  EXPECT_THAT(x, Each(2));
}

TEST(PersistentOperationTest, NameHasOneUntilItIsDestroyed) {
  CoordinatedWorld world(1);
  Values values(1, 1);
  PersistentPtr persistent = world[0].MakePersistent(Sum("x", values)).value();
  const auto second = world[0].MakePersistent(Sum("x", values));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("'x'"), HasSubstr("another name")));
  EXPECT_TRUE(SubmitAndWait(world[0], persistent).ok());
  persistent.reset();
  EXPECT_TRUE(world[0].MakePersistent(Sum("x", values)).ok());
}

// An operation that the library keeps for a name does not prevent the program's
// own. Instances of both belong together in the order of their submission.
TEST(PersistentOperationTest, NameWithoutOneOwnerMayHaveSeveral) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values a(1, 1), b(1, 10), c(1, 100);
    const PersistentPtr first =
        world[rank].MakePersistent(Sum("x", a), Owner::kAny).value();
    const PersistentPtr own = world[rank].MakePersistent(Sum("x", b)).value();
    const PersistentPtr last =
        world[rank].MakePersistent(Sum("x", c), Owner::kAny).value();
    for (int step = 1; step <= 4; ++step) {
      ASSERT_TRUE(world[rank].SubmitPersistent({first, own, last}, true).ok());
      for (const PersistentPtr& one : {last, own, first}) {
        EXPECT_TRUE(world[rank].Wait(*one).ok());
      }
      EXPECT_THAT(a, Each(1 << step));
      EXPECT_THAT(b, Each(10 << step));
      EXPECT_THAT(c, Each(100 << step));
    }
  });
}

TEST(PersistentOperationTest, RequestCanChange) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values values(2, 1);
    const PersistentPtr persistent =
        world[rank].MakePersistent(Sum("x", values)).value();
    for (int step = 0; step < 12; ++step) {
      values.assign(2, rank + 1);
      Operation next = Sum("x", values);
      if (step % 3 == 0) next.request.op = collective::ReduceOp::kMax;
      if (step % 3 == 1 && rank == 1) next.request.local_error = "not now";
      ASSERT_TRUE(Load(persistent, std::move(next)).ok());
      const absl::Status status = SubmitAndWait(world[rank], persistent);
      if (step % 3 == 1) {
        EXPECT_THAT(std::string(status.message()), HasSubstr("not now"));
      } else {
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_THAT(values, Each(step % 3 == 0 ? 2 : 3));
      }
    }
  });
}

TEST(PersistentOperationTest, IsReducedEvenIfDestroyedWhilePending) {
  Values x0(1, 1), x1(1, 2);
  CoordinatedWorld world(2);
  PersistentPtr persistent = world[0].MakePersistent(Sum("x", x0)).value();
  ASSERT_TRUE(world[0].SubmitPersistent({persistent}, false).ok());
  persistent.reset();
  const auto other = world[1].Submit(Sum("x", x1));
  EXPECT_TRUE(world[1].Wait(**other).ok());
  EXPECT_THAT(x1, Each(3));
}

TEST(PersistentOperationTest, ALocalErrorHoldsForOneSubmission) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values values(2, 1);
    Operation first = Sum("x", values);
    if (rank == 1) first.request.local_error = "not at first";
    const PersistentPtr persistent =
        world[rank].MakePersistent(std::move(first)).value();
    for (int step = 0; step < 12; ++step) {
      values.assign(2, 1);
      const bool refused = step % 4 == 0;
      if (step > 0) {
        Operation next = Sum("x", values);
        if (rank == 1 && refused) {
          next.request.local_error = absl::StrCat("not in step ", step);
        }
        ASSERT_TRUE(Load(persistent, std::move(next)).ok());
      }
      const absl::Status status = SubmitAndWait(world[rank], persistent);
      if (refused) {
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr(step == 0 ? "not at first"
                                        : absl::StrCat("not in step ", step)));
      } else {
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_THAT(values, Each(2));
      }
    }
  });
}

TEST(PersistentOperationTest, TensorsCanChange) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values values(2, 1);
    const PersistentPtr persistent =
        world[rank].MakePersistent(Sum("x", values)).value();
    for (int step = 0; step < 12; ++step) {
      if (step % 4 == 3) values.resize(values.size() + 1);
      values.assign(values.size(), 1);
      Operation next = Sum("x", values);
      // In one step only rank 0 has another shape.
      if (step == 7 && rank == 0) {
        next.request.tensors = {
            {.shape = {1, static_cast<int64_t>(values.size())}}};
      }
      ASSERT_TRUE(Load(persistent, std::move(next)).ok());
      const absl::Status status = SubmitAndWait(world[rank], persistent);
      EXPECT_EQ(status.code(), step == 7 ? absl::StatusCode::kInvalidArgument
                                         : absl::StatusCode::kOk)
          << "step " << step << ": " << status;
      if (step != 7) {
        EXPECT_THAT(values, Each(2));
      }
    }
  });
}

TEST(PersistentOperationTest, KindsOfUnknownSizeAreRefused) {
  CoordinatedWorld world(1);
  Values values(1, 1);
  Operation gather = Sum("x", values);
  gather.request.collective = Collective::kAllgather;
  EXPECT_EQ(world[0].MakePersistent(std::move(gather)).status().code(),
            absl::StatusCode::kInvalidArgument);
  Operation broadcast = Sum("x", values);
  broadcast.request.collective = Collective::kBroadcast;
  broadcast.request.root_rank = 1;
  EXPECT_EQ(world[0].MakePersistent(std::move(broadcast)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PersistentOperationTest, KeepsItsMemoryAfterTheWorldHasEnded) {
  Values values(1, 1);
  CoordinatedWorld world(2);
  const PersistentPtr persistent =
      world[0].MakePersistent(Sum("x", values)).value();
  const auto owner = std::make_shared<int>();
  Operation next = Sum("x", values);
  next.keep_alive = owner;
  ASSERT_TRUE(Load(persistent, std::move(next)).ok());
  ASSERT_TRUE(world[0].SubmitPersistent({persistent}, false).ok());
  world[1].Leave("out of disk space");
  EXPECT_EQ(world[0].Wait(*persistent).code(), absl::StatusCode::kUnavailable);
  const absl::Status status = world[0].SubmitPersistent({persistent}, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("out of disk space"));
  EXPECT_TRUE(persistent->done());
  persistent->Release();
  EXPECT_EQ(owner.use_count(), 2);
}

TEST(PersistentOperationTest, OperationOfARemovedProcessSetIsRefused) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Operation add;
    add.request = hvdlite::testing::AddSet({0, 1});
    const auto added = world[rank].Submit(std::move(add)).value();
    ASSERT_TRUE(world[rank].Wait(*added).ok());
    Values values(1, 1);
    Operation sum = Sum("x", values);
    sum.request.process_set = static_cast<ProcessSetId>(added->value());
    const PersistentPtr persistent =
        world[rank].MakePersistent(std::move(sum)).value();
    for (int step = 0; step < 4; ++step) {
      ASSERT_TRUE(SubmitAndWait(world[rank], persistent).ok());
    }
    EXPECT_THAT(values, Each(16));
    Operation remove;
    remove.request.name = "remove";
    remove.request.collective = Collective::kRemoveProcessSet;
    remove.request.removed = static_cast<ProcessSetId>(added->value());
    const auto removed = world[rank].Submit(std::move(remove)).value();
    ASSERT_TRUE(world[rank].Wait(*removed).ok());
    EXPECT_EQ(world[rank].SubmitPersistent({persistent}, false).code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(persistent->done());
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
