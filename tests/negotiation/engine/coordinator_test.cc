#include "negotiation/engine/coordinator.h"

#include <pthread.h>
#include <sched.h>

#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/protocol/tree.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::CoordinatedWorld;
using hvdlite::testing::SubmitAndWait;
using hvdlite::testing::Sum;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

class CoordinatorSizeTest : public ::testing::TestWithParam<int> {};

TEST_P(CoordinatorSizeTest, SynchronousSumsAgree) {
  CoordinatedWorld world(GetParam());
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 50; ++i) {
      std::vector<float> values(7, static_cast<float>(rank + i));
      Operation operation = Sum("x", values);
      operation.caller_waits = i % 2 == 0;
      ASSERT_TRUE(SubmitAndWait(world[rank], std::move(operation)).ok());
      const int size = GetParam();
      EXPECT_THAT(values,
                  Each(static_cast<float>(size * (size - 1) / 2 + size * i)));
    }
  });
}

TEST_P(CoordinatorSizeTest, ManyTensorsInShuffledOrdersAreAllReduced) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 2000;
  options.config.fusion_threshold_bytes = 8000;
  options.config.chunk_bytes = 1024;
  options.config.tree_arity = 2;
  CoordinatedWorld world(GetParam(), options);
  world.OnEveryRank([&](int rank) {
    std::mt19937 random(rank);
    for (int step = 0; step < 5; ++step) {
      std::vector<std::vector<float>> values;
      std::vector<int> order;
      for (int i = 0; i < 60; ++i) {
        values.emplace_back(i * 3, static_cast<float>(i + step));
        order.push_back(i);
      }
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::shared_ptr<const Completion>> completions;
      for (const int i : order) {
        auto completion =
            world[rank].Submit(Sum(absl::StrCat("t", i), values[i]));
        ASSERT_TRUE(completion.ok()) << completion.status();
        completions.push_back(*completion);
      }
      for (auto c = completions.rbegin(); c != completions.rend(); ++c) {
        ASSERT_TRUE(world[rank].Wait(**c).ok());
      }
      for (int i = 0; i < 60; ++i) {
        ASSERT_THAT(values[i],
                    Each(static_cast<float>((i + step) * GetParam())));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, CoordinatorSizeTest,
                         ::testing::Values(1, 2, 3, 4, 8));

// The CPUs of the thread that executes an operation for which nobody waits.
cpu_set_t CpusOfTheBackgroundThread(Coordinator& coordinator) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  std::vector<float> values(3, 1);
  std::latch done(1);
  Operation operation = Sum("x", values);
  operation.done = [&](const absl::Status&) {
    pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    done.count_down();
  };
  EXPECT_TRUE(coordinator.Submit(std::move(operation)).ok());
  done.wait();
  return cpus;
}

TEST(CoordinatorTest, BackgroundThreadIsBoundToTheCpuOfTheOptions) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof(usable), &usable), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    CoordinatorOptions options;
    options.config.min_batch_bytes = 0;
    options.coordinator_cpu = cpu;
    CoordinatedWorld world(1, options);
    const cpu_set_t cpus = CpusOfTheBackgroundThread(world[0]);
    EXPECT_EQ(CPU_COUNT(&cpus), 1);
    EXPECT_TRUE(CPU_ISSET(cpu, &cpus));
    EXPECT_EQ(world.log(), "");
  }
}

TEST(CoordinatorTest, ACpuThatIsNotThereIsAWarning) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  options.coordinator_cpu = CPU_SETSIZE - 1;
  CoordinatedWorld world(1, options);
  const cpu_set_t cpus = CpusOfTheBackgroundThread(world[0]);
  EXPECT_GE(CPU_COUNT(&cpus), 1);
  EXPECT_THAT(world.log(), HasSubstr("cannot be bound to CPU 1023"));
}

TEST(CoordinatorTest, ABackgroundThreadThatSpinsDoesItsWork) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  options.spin = absl::Microseconds(20);
  CoordinatedWorld world(3, options);
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 100; ++i) {
      std::vector<float> values(7, 1);
      std::latch done(1);
      Operation operation = Sum("x", values);
      operation.done = [&](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        done.count_down();
      };
      ASSERT_TRUE(world[rank].Submit(std::move(operation)).ok());
      done.wait();
      EXPECT_THAT(values, Each(3.0f));
    }
  });
}

TEST(CoordinatorTest, ThreadsOfOneRankWaitAtTheSameTime) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&world, rank, t] {
        for (int i = 0; i < 30; ++i) {
          std::vector<float> values(3, 1);
          ASSERT_TRUE(
              SubmitAndWait(world[rank], Sum(absl::StrCat("t", t), values))
                  .ok());
          ASSERT_THAT(values, Each(2));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(CoordinatorTest, BackgroundThreadFinishesWithoutAnybodyWaiting) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  std::latch done(3);
  std::vector<std::vector<float>> values(3, std::vector<float>(5, 2));
  CoordinatedWorld world(3, options);
  for (int rank = 0; rank < 3; ++rank) {
    Operation operation = Sum("x", values[rank]);
    operation.done = [&done](const absl::Status& status) {
      EXPECT_TRUE(status.ok());
      done.count_down();
    };
    ASSERT_TRUE(world[rank].Submit(std::move(operation)).ok());
  }
  done.wait();
  EXPECT_THAT(values[1], Each(6));
}

TEST(CoordinatorTest, WaitForReturnsWhenTimeIsUp) {
  std::vector<float> values(1, 1), other(1, 2);
  CoordinatedWorld world(2);
  auto completion = world[0].Submit(Sum("x", values));
  ASSERT_TRUE(completion.ok());
  EXPECT_FALSE(world[0].WaitFor(**completion, absl::Milliseconds(1)));
  ASSERT_TRUE(world[1].Submit(Sum("x", other)).ok());
  EXPECT_TRUE(world[0].WaitFor(**completion, absl::InfiniteDuration()));
  EXPECT_THAT(values, Each(3));
}

// The background thread sleeps without limit in these two, most of the time: a
// wake-up that is lost in one of the rounds hangs the test.
TEST(CoordinatorTest, WaitingForNoTimeStillTellsThatSomebodyWaits) {
  std::vector<float> values(1, 1);
  CoordinatedWorld world(1);
  for (int round = 0; round < 200; ++round) {
    Operation operation = Sum("x", values);
    operation.caller_waits = true;  // the background thread is not woken for it
    const auto completion = world[0].Submit(std::move(operation)).value();
    world[0].WaitFor(*completion, absl::ZeroDuration());
    while (!completion->done()) std::this_thread::yield();
  }
}

TEST(CoordinatorTest, WorkThatAWaiterTookInIsFinishedWithoutIt) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 1000;
  std::vector<float> large(1000, 0), small(1, 0);
  CoordinatedWorld world(1, options);
  for (int round = 0; round < 200; ++round) {
    Operation operation = Sum("large", large);
    operation.request.prescale_factor = 2;  // not of the small one's batch
    operation.caller_waits = true;
    const auto completion = world[0].Submit(std::move(operation)).value();
    Operation awaited = Sum("small", small);
    awaited.caller_waits = true;
    ASSERT_TRUE(SubmitAndWait(world[0], std::move(awaited)).ok());
    while (!completion->done()) std::this_thread::yield();
  }
}

TEST(CoordinatorTest, RefusalOfOneRankFailsOnAll) {
  CoordinatedWorld world(3);
  world.OnEveryRank([&](int rank) {
    for (int step = 0; step < 4; ++step) {  // announced, registered, by id
      std::vector<float> values(2, 1);
      Operation operation = Sum("x", values);
      const bool refused = step == 1 || step == 3;
      if (rank == 1 && refused) {
        operation.request.local_error = "its gradient is sparse";
      }
      const absl::Status status =
          SubmitAndWait(world[rank], std::move(operation));
      EXPECT_EQ(status.ok(), !refused) << step;
      if (refused) {
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr("'x' cannot be done on rank 1: its gradient is "
                              "sparse"));
      }
    }
  });
}

TEST(CoordinatorTest, MismatchFailsOnEveryRankAndWorkGoesOn) {
  CoordinatedWorld world(3);
  std::vector<std::string> messages(3);
  world.OnEveryRank([&](int rank) {
    std::vector<float> values(rank == 1 ? 4 : 3, 1);
    const absl::Status status = SubmitAndWait(world[rank], Sum("x", values));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    messages[rank] = std::string(status.message());
    std::vector<float> good(2, 1);
    EXPECT_TRUE(SubmitAndWait(world[rank], Sum("x", good)).ok());
    EXPECT_THAT(good, Each(3));
  });
  EXPECT_THAT(messages[0], AllOf(HasSubstr("[3] on ranks 0, 2"),
                                 HasSubstr("[4] on rank 1")));
  EXPECT_EQ(messages[0], messages[1]);
  EXPECT_EQ(messages[0], messages[2]);
}

TEST(CoordinatorTest, AbsentContributesZerosAndIsToldWhenAllAre) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    for (const bool all : {false, true}) {
      std::vector<float> values(3, 5);
      Operation operation = Sum("x", values);
      if (rank == 0 || all) {
        operation.absent = true;
        operation.inputs = {};
      }
      auto completion = world[rank].Submit(std::move(operation));
      ASSERT_TRUE(completion.ok());
      ASSERT_TRUE(world[rank].Wait(**completion).ok());
      EXPECT_EQ((*completion)->absent_everywhere(), all);
      EXPECT_THAT(values, Each(5));
    }
  });
}

TEST(CoordinatorTest, ShutdownGivesTheCommunicatorBack) {
  CoordinatedWorld world(3);
  world.OnEveryRank([&](int rank) {
    std::vector<float> values(4, 1);
    ASSERT_TRUE(SubmitAndWait(world[rank], Sum("x", values)).ok());
    ASSERT_TRUE(world.Shutdown(rank).ok());
    EXPECT_TRUE(world.communicator(rank).Barrier().ok());
    EXPECT_GT(world[rank].cpu_time(), absl::ZeroDuration());
  });
}

// Two nodes of two ranks, of which one each reaches the other node.
TEST(CoordinatorTest, TheTreeIsThatOfTheNodesThatTheChannelWasMadeFor) {
  const auto layout =
      std::make_shared<WorldLayout>(std::vector<int>{0, 0, 1, 1});
  std::vector<std::unique_ptr<ControlChannel>> on_node;
  for (int node = 0; node < 2; ++node) {
    auto channels = CreateInProcessChannels(2).value();
    for (auto& channel : channels) on_node.push_back(std::move(channel));
  }
  CoordinatorOptions options;
  options.config.tree_arity = 1;
  // Its topology has every rank on a host of its own.
  CoordinatedWorld world(
      4, options, nullptr, {},
      [&](int rank, std::unique_ptr<ControlChannel> channel) {
        if (layout->local_rank(rank) > 0) channel = nullptr;
        return CreateRoutedChannel(rank, layout, std::move(on_node[rank]),
                                   std::move(channel));
      });
  world.OnEveryRank([&](int rank) {
    std::vector<float> values(10, 1);
    const auto sum = world[rank].Submit(Sum("x", values));
    ASSERT_TRUE(sum.ok()) << sum.status();
    const absl::Status status = world[rank].Wait(**sum);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(values, Each(4));
  });
}

// Passes everything on, and has something to warn of once.
class WarningChannel final : public ControlChannel {
 public:
  explicit WarningChannel(std::unique_ptr<ControlChannel> base)
      : base_(std::move(base)) {}
  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  absl::string_view name() const override { return base_->name(); }
  absl::Status Send(int to, std::string bytes) override {
    return base_->Send(to, std::move(bytes));
  }
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    return base_->TryReceive();
  }
  uint64_t delivered() override { return base_->delivered(); }
  absl::Status Flush(absl::Duration timeout) override {
    return base_->Flush(timeout);
  }
  std::vector<int> wake_descriptors() const override {
    return base_->wake_descriptors();
  }
  std::vector<std::string> TakeWarnings() override {
    return std::exchange(warnings_, {});
  }

 private:
  const std::unique_ptr<ControlChannel> base_;
  std::vector<std::string> warnings_ = {
      absl::StrCat("rank ", rank(), " was sent nonsense")};
};

TEST(CoordinatorTest, WarningsOfTheChannelAreLogged) {
  CoordinatedWorld world(2, {}, nullptr, {}, [](int, auto channel) {
    return std::make_unique<WarningChannel>(std::move(channel));
  });
  world.OnEveryRank([&](int rank) {
    std::vector<float> values(1, 1);
    EXPECT_TRUE(SubmitAndWait(world[rank], Sum("x", values)).ok());
  });
  EXPECT_THAT(world.log(), AllOf(HasSubstr("rank 0 was sent nonsense"),
                                 HasSubstr("rank 1 was sent nonsense")));
}

}  // namespace
}  // namespace hvdlite::negotiation
