#include "negotiation/engine/coordinator.h"

#include <pthread.h>
#include <sched.h>

#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/protocol/tree.h"
#include "tests/testing/fakes/forwarding_channel.h"
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

TEST(CoordinatorTest, BackgroundThreadIsBoundToTheCpuOfTheOptions) {
  cpu_set_t cpus;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &cpus)) --last;
  CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  options.coordinator_cpu = last;
  CoordinatedWorld world(1, options);
  std::vector<float> values(3, 1);
  std::latch done(1);
  Operation operation = Sum("x", values);
  operation.done = [&](const absl::Status&) {  // no thread waits for it
    pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    done.count_down();
  };
  ASSERT_TRUE(world[0].Submit(std::move(operation)).ok());
  done.wait();
  EXPECT_EQ(CPU_COUNT(&cpus), 1);
  EXPECT_TRUE(CPU_ISSET(last, &cpus));
}

TEST(CoordinatorTest, SpinningBackgroundThreadDoesItsWork) {
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

TEST(CoordinatorTest, BackgroundThreadFinishesWithoutAWaiter) {
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

TEST(CoordinatorTest, WaitForReturnsAfterItsTimeout) {
  std::vector<float> values(1, 1), other(1, 2);
  CoordinatedWorld world(2);
  auto completion = world[0].Submit(Sum("x", values));
  ASSERT_TRUE(completion.ok());
  EXPECT_FALSE(world[0].WaitFor(**completion, absl::Milliseconds(1)));
  ASSERT_TRUE(world[1].Submit(Sum("x", other)).ok());
  EXPECT_TRUE(world[0].WaitFor(**completion, absl::InfiniteDuration()));
  EXPECT_THAT(values, Each(3));
}

// In these two tests the background thread sleeps without limit most of the
// time: a lost wake-up in one of the rounds hangs the test.
TEST(CoordinatorTest, WaitForZeroTimeMarksTheOperationUrgent) {
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
    operation.request.prescale_factor = 2;  // not in the small one's bucket
    operation.caller_waits = true;
    const auto completion = world[0].Submit(std::move(operation)).value();
    Operation awaited = Sum("small", small);
    awaited.caller_waits = true;
    ASSERT_TRUE(SubmitAndWait(world[0], std::move(awaited)).ok());
    while (!completion->done()) std::this_thread::yield();
  }
}

TEST(CoordinatorTest, GroupWithoutTensorsEnds) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Operation nothing;
    nothing.request.name = "nothing";
    EXPECT_EQ(SubmitAndWait(world[rank], std::move(nothing)), absl::OkStatus());
  });
}

TEST(CoordinatorTest, CommunicatorCanBeUsedAfterShutdown) {
  CoordinatedWorld world(3);
  world.OnEveryRank([&](int rank) {
    std::vector<float> values(4, 1);
    ASSERT_TRUE(SubmitAndWait(world[rank], Sum("x", values)).ok());
    ASSERT_TRUE(world.Shutdown(rank).ok());
    EXPECT_TRUE(world.communicator(rank).Barrier().ok());
    EXPECT_GT(world[rank].cpu_time(), absl::ZeroDuration());
  });
}

// Two nodes of two ranks; one rank of each reaches the other node.
TEST(CoordinatorTest, TreeFollowsTheNodesOfTheChannel) {
  const auto layout =
      std::make_shared<WorldLayout>(std::vector<int>{0, 0, 1, 1});
  std::vector<std::unique_ptr<ControlChannel>> on_node;
  for (int node = 0; node < 2; ++node) {
    auto channels = CreateInProcessChannels(2).value();
    for (auto& channel : channels) on_node.push_back(std::move(channel));
  }
  CoordinatorOptions options;
  options.config.tree_arity = 1;
  // In its topology every rank is on a host of its own.
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

// A channel with one warning.
class WarningChannel final : public hvdlite::testing::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;
  std::vector<std::string> TakeWarnings() override {
    return std::exchange(warnings_, {});
  }

 private:
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
