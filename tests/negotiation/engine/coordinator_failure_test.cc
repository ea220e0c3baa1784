// What other ranks learn, and what ends, when a rank leaves, is stuck or fails.
#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/engine/watchdog.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/fakes/forwarding_channel.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/coordinated_world.h"

// After an exception, a coordinator keeps what may be damaged for ever.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:hvdlite::negotiation::Coordinator::Coordinator\n";
}

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::CoordinatedWorld;
using hvdlite::testing::SubmitAndWait;
using hvdlite::testing::Sum;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(CoordinatorFailureTest, LeavingFailsOperationsOfOthers) {
  std::vector<float> values(1, 1);
  CoordinatedWorld world(3);
  auto completion = world[0].Submit(Sum("x", values));
  ASSERT_TRUE(completion.ok());
  world[2].Leave("its disk is full");
  const absl::Status status = world[0].Wait(**completion);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("allreduce of 'x'"), HasSubstr("rank 2 (host2)"),
                    HasSubstr("its disk is full")));
  // Later operations fail for the same reason, here and on the leaving rank.
  EXPECT_THAT(SubmitAndWait(world[0], Sum("y", values)).message(),
              HasSubstr("its disk is full"));
  EXPECT_FALSE(SubmitAndWait(world[2], Sum("y", values)).ok());
}

// A communicator that a test can block inside an allreduce.
class StickyCommunicator final
    : public hvdlite::testing::ForwardingCommunicator {
 public:
  struct Gate {
    std::latch entered{1};
    std::latch released{1};
  };
  StickyCommunicator(std::unique_ptr<collective::Communicator> inner,
                     Gate* gate)
      : ForwardingCommunicator(std::move(inner)), gate_(gate) {}
  absl::Status Allreduce(absl::Span<std::byte> buffer,
                         collective::DataType dtype,
                         collective::ReduceOp op) override {
    if (gate_ != nullptr) {
      gate_->entered.count_down();
      gate_->released.wait();
      return absl::UnavailableError("interrupted");
    }
    return ForwardingCommunicator::Allreduce(buffer, dtype, op);
  }

 private:
  Gate* const gate_;
};

class WatchdogTest : public ::testing::Test {
 protected:
  CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.config.min_batch_bytes = 0;
    // This is time of the fake clock; the watchdog's thread checks four times
    // as often, in real time.
    options.config.watchdog_seconds = 0.04;
    return options;
  }
  CoordinatedWorld::Wrap StickAll() {
    return [this](int rank, std::unique_ptr<collective::Communicator> inner) {
      return std::make_unique<StickyCommunicator>(std::move(inner),
                                                  &gates_[rank]);
    };
  }
  base::FakeClock clock_;
  StickyCommunicator::Gate gates_[2];
  std::vector<float> values_[2] = {std::vector<float>(1, 1),
                                   std::vector<float>(1, 1)};
};

TEST_F(WatchdogTest, SlowCallReportsItsSpeedAtDoublingIntervals) {
  std::vector<std::string> told;
  Watchdog watchdog(
      clock_, absl::InfiniteDuration(), [](const std::string&) { FAIL(); },
      {.after = absl::Seconds(60),
       .tell = [&](const std::string& text) { told.push_back(text); }});
  const auto pass = [&](int seconds) {
    clock_.Advance(absl::Seconds(seconds));
    watchdog.Check();
    return std::exchange(told, {});
  };
  {
    const Watched watched(watchdog, {.what = "allreduce of 'x'",
                                     .bytes = 5'000'000,
                                     .chunk_bytes = 1'000'000});
    EXPECT_THAT(pass(59), IsEmpty());
    EXPECT_THAT(pass(1),
                ElementsAre(StartsWith(
                    "allreduce of 'x' has taken 60 s so far: nothing of its "
                    "5.000 MB has arrived yet: a link is slower than "
                    "0.017 MB/s, or a rank is stopped")));
    watchdog.Feed(1'000'000);
    watchdog.Feed(2'000'000);
    EXPECT_THAT(pass(59), IsEmpty());
    EXPECT_THAT(pass(1),
                ElementsAre(HasSubstr("120 s so far: 2.000 of 5.000 MB are "
                                      "done (0.017 MB/s): slow, not stuck")));
    EXPECT_THAT(pass(119), IsEmpty());
  }
  EXPECT_THAT(pass(1000), IsEmpty());
  const Watched moves_nothing(watchdog, {.what = "making process set 3"});
  EXPECT_THAT(pass(1000), IsEmpty());
}

// Blocks in the third chunk of an allgather; its sizes are sent before.
class StickyAllgather final : public hvdlite::testing::ForwardingCommunicator {
 public:
  StickyAllgather(std::unique_ptr<collective::Communicator> inner,
                  StickyCommunicator::Gate* gate)
      : ForwardingCommunicator(std::move(inner)), gate_(gate) {}
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    if (++calls_ == 4) {
      gate_->entered.count_down();
      gate_->released.wait();
    }
    return ForwardingCommunicator::Allgather(buffer, bytes_of_rank);
  }

 private:
  StickyCommunicator::Gate* const gate_;
  int calls_ = 0;
};

TEST_F(WatchdogTest, SlowBucketCountsMovedBytesOnce) {
  CoordinatorOptions options = Options();
  options.config.chunk_bytes = 1024;
  options.config.stall_warning_seconds = 0.02;
  CoordinatedWorld world(
      2, options, &clock_,
      [&](int rank, std::unique_ptr<collective::Communicator> inner) {
        return std::make_unique<StickyAllgather>(std::move(inner),
                                                 &gates_[rank]);
      });
  std::vector<float> given(512, 1);
  std::array<std::vector<float>, 2> taken;
  std::shared_ptr<const Completion> completions[2];
  for (int rank = 0; rank < 2; ++rank) {
    Operation gather;
    gather.request.name = "x";
    gather.request.collective = Collective::kAllgather;
    gather.request.tensors = {{.shape = {kAnyLength}}};
    gather.inputs = {hvdlite::testing::BytesOf(given)};
    gather.rows = {512};
    gather.allocate = [&taken, rank](const RowsByMember&) {
      taken[rank].resize(1024);
      return Outputs{hvdlite::testing::BytesOf(taken[rank])};
    };
    completions[rank] = world[rank].Submit(std::move(gather)).value();
  }
  for (auto& gate : gates_) gate.entered.wait();
  clock_.Advance(absl::Milliseconds(30));
  while (world.log().find("; hvdlite_doctor --check links") ==
         std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_THAT(world.log(), HasSubstr("0.001 of 0.002 MB are done"));
  for (auto& gate : gates_) gate.released.count_down();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(world[rank].Wait(*completions[rank]), absl::OkStatus());
  }
}

TEST_F(WatchdogTest, EndsWaitsWhenTheBackgroundThreadIsStuck) {
  CoordinatedWorld world(2, Options(), &clock_, StickAll());
  std::shared_ptr<const Completion> completions[2];
  for (int rank = 0; rank < 2; ++rank) {
    completions[rank] = world[rank].Submit(Sum("x", values_[rank])).value();
  }
  for (auto& gate : gates_) gate.entered.wait();
  clock_.Advance(absl::Seconds(1));
  for (int rank = 0; rank < 2; ++rank) {
    const absl::Status status = world[rank].Wait(*completions[rank]);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("has not come back from allreduce "
                                            "of 'x'"));
    EXPECT_TRUE(world[rank].interrupted());
  }
  for (auto& gate : gates_) gate.released.count_down();
}

TEST_F(WatchdogTest, ReportsAStuckApplicationThread) {
  CoordinatorOptions options = Options();
  options.config.min_batch_bytes = 1 << 20;  // starts only if a thread waits
  CoordinatedWorld world(2, options, &clock_, StickAll());
  std::atomic<int> stuck{0};
  // A real process would end here.
  world.on_stuck = [&](const absl::Status&) { ++stuck; };
  std::thread advance([&] {
    for (auto& gate : gates_) gate.entered.wait();
    clock_.Advance(absl::Seconds(1));
    for (int rank = 0; rank < 2; ++rank) {
      while (world[rank].world_status().ok()) std::this_thread::yield();
    }
    while (stuck == 0) std::this_thread::yield();
    for (auto& gate : gates_) gate.released.count_down();
  });
  world.OnEveryRank([&](int rank) {
    Operation operation = Sum("x", values_[rank]);
    operation.caller_waits = true;
    EXPECT_EQ(SubmitAndWait(world[rank], std::move(operation)).code(),
              absl::StatusCode::kUnavailable);
  });
  advance.join();
  EXPECT_GE(stuck, 1);
}

// The watchdog may still be reporting a call that has returned meanwhile.
TEST_F(WatchdogTest, CloseWaitsForARunningWatchdogCallback) {
  CoordinatedWorld world(2, Options(), &clock_, StickAll());
  std::latch telling{1};
  std::latch closing{1};
  for (int rank = 0; rank < 2; ++rank) {
    Operation operation = Sum("x", values_[rank]);
    if (rank == 0) {
      operation.done = [&](const absl::Status&) {  // on the watchdog's thread
        telling.count_down();
        closing.wait();
        for (int i = 0; i < 20'000; ++i) std::this_thread::yield();
      };
    }
    ASSERT_TRUE(world[rank].Submit(std::move(operation)).ok());
  }
  for (auto& gate : gates_) gate.entered.wait();
  clock_.Advance(absl::Seconds(1));
  telling.wait();
  for (auto& gate : gates_) gate.released.count_down();
  world.Shutdown(0).IgnoreError();
  closing.count_down();
  world[0].Close();
  EXPECT_FALSE(world[0].world_status().ok());
}

// The thread with the progress lock may be inside a bucket, or wait for an
// operation that only this thread will submit.
TEST_F(WatchdogTest, RecorderIsReplacedWhileAnotherThreadRunsTheLoop) {
  CoordinatorOptions options = Options();
  options.config.watchdog_seconds = 0;
  CoordinatedWorld world(2, options, &clock_, StickAll());
  world.OnEveryRank([&](int rank) {
    std::thread waits([&] {
      EXPECT_FALSE(SubmitAndWait(world[rank], Sum("x", values_[rank])).ok());
    });
    gates_[rank].entered.wait();
    world[rank].SetRecorder(nullptr);
    gates_[rank].released.count_down();
    waits.join();
  });
}

TEST_F(WatchdogTest, ShutdownDoesNotWaitForAStuckThread) {
  CoordinatorOptions options = Options();
  options.config.watchdog_seconds = 0;
  CoordinatedWorld world(2, options, &clock_, StickAll());
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(world[rank].Submit(Sum("x", values_[rank])).ok());
  }
  for (auto& gate : gates_) gate.entered.wait();
  const absl::Status status =
      world[0].Shutdown("time is up", absl::ZeroDuration(), {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(world[0].interrupted());
  for (auto& gate : gates_) gate.released.count_down();
}

// A channel that a test can cut.
class CuttableChannel final : public hvdlite::testing::ForwardingChannel {
 public:
  CuttableChannel(std::unique_ptr<ControlChannel> base,
                  const std::atomic<bool>& cut)
      : ForwardingChannel(std::move(base)), cut_(cut) {}
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    if (cut_) return absl::UnavailableError("its link is cut");
    return ForwardingChannel::TryReceive();
  }

 private:
  const std::atomic<bool>& cut_;
};

TEST(CoordinatorFailureTest, ShutdownReportsWhatBrokeTheWorld) {
  std::atomic<bool> cut{false};
  const std::atomic<bool> never{false};
  CoordinatedWorld world(2, {}, nullptr, {},
                         [&](int rank, std::unique_ptr<ControlChannel> base) {
                           return std::make_unique<CuttableChannel>(
                               std::move(base), rank == 0 ? cut : never);
                         });
  world[0].Leave("it is done");
  while (world[0].world_status().ok()) std::this_thread::yield();
  cut = true;
  EXPECT_THAT(world.Shutdown(0).message(), HasSubstr("its link is cut"));
  // The order matters: leaving is not the cause.
  EXPECT_THAT(world.log(), HasSubstr("its link is cut (after: it is done)"));
}

// On the last rank, process sets cannot be made.
class CutOffCommunicator final
    : public hvdlite::testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    if (rank() == size() - 1) return absl::UnavailableError("its link is cut");
    return ForwardingCommunicator::CreateSubgroup(members, tag);
  }
};

TEST(CoordinatorFailureTest, RanksAtTheGateLearnThatAnotherRankFailed) {
  CoordinatedWorld world(
      3, {}, nullptr, [](int, std::unique_ptr<collective::Communicator> inner) {
        return std::make_unique<CutOffCommunicator>(std::move(inner));
      });
  world.OnEveryRank([&](int rank) {
    Operation add;
    add.request = hvdlite::testing::AddSet({2});
    ASSERT_TRUE(world[rank].Submit(std::move(add)).ok());
    std::vector<float> values(1, 1);
    const absl::Status status = SubmitAndWait(world[rank], Sum("x", values));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("its link is cut"));
    if (rank < 2) {
      EXPECT_THAT(status.message(), HasSubstr("rank 2 (host2)"));
    }
  });
}

class ThrowingCommunicator final
    : public hvdlite::testing::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  absl::Status Allreduce(absl::Span<std::byte> buffer,
                         collective::DataType dtype,
                         collective::ReduceOp op) override {
    ForwardingCommunicator::Allreduce(buffer, dtype, op).IgnoreError();
    throw std::bad_alloc();
  }
};

TEST(CoordinatorFailureTest, RunningOutOfMemoryInABucketBreaksTheWorld) {
  for (const bool in_background : {false, true}) {
    CoordinatorOptions options;
    options.config.min_batch_bytes = in_background ? 0 : 1024;
    CoordinatedWorld world(
        2, options, nullptr,
        [](int, std::unique_ptr<collective::Communicator> inner) {
          return std::make_unique<ThrowingCommunicator>(std::move(inner));
        });
    world.OnEveryRank([&](int rank) {
      std::vector<float> values(1, 1);
      Operation operation = Sum("x", values);
      operation.caller_waits = !in_background;
      auto completion = world[rank].Submit(std::move(operation));
      ASSERT_TRUE(completion.ok());
      while (in_background && !(*completion)->done()) {
        std::this_thread::yield();
      }
      EXPECT_EQ(world[rank].Wait(**completion).code(),
                absl::StatusCode::kUnavailable);
      EXPECT_FALSE(world[rank].world_status().ok());
    });
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
