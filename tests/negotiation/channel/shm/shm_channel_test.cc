#include "negotiation/channel/shm/shm_channel.h"

#include <barrier>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using collective::Communicator;
using hvdlite::testing::ControlChannelCheck;
using hvdlite::testing::Receive;
using hvdlite::testing::SleepOn;
using ::testing::HasSubstr;

// Runs `body` on one thread per rank.
void OnRanks(int size, const ShmChannelOptions& options,
             const std::function<void(
                 ControlChannel&, const hvdlite::testing::Barrier&)>& body) {
  std::barrier barrier(size);
  hvdlite::testing::RunInProcessRanks(size, [&](Communicator& node) {
    auto channel = CreateShmChannel(node, options);
    ASSERT_TRUE(channel.ok()) << channel.status();
    EXPECT_EQ((*channel)->rank(), node.rank());
    EXPECT_EQ((*channel)->size(), size);
    body(**channel, [&] { barrier.arrive_and_wait(); });
  });
}

using Case = std::tuple<int, size_t, ControlChannelCheck>;
class ShmChannelConformance : public ::testing::TestWithParam<Case> {};

#ifdef __SANITIZE_THREAD__
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

TEST_P(ShmChannelConformance, Conforms) {
  const auto& [size, cells, check] = GetParam();
  if (kSlow && (size > 2 || cells < 64) &&
      absl::string_view(check.name) == "LargeMessagesNeedNoReceiver") {
    GTEST_SKIP() << "takes minutes under ThreadSanitizer";
  }
  OnRanks(size, {.cells_per_ring = cells}, check.run);
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  const auto& [size, cells, check] = info.param;
  return absl::StrCat(check.name, "_", size, "_Cells", cells);
}

INSTANTIATE_TEST_SUITE_P(
    All, ShmChannelConformance,
    ::testing::Combine(
        ::testing::Range(1, 9), ::testing::Values(64),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    SmallestRings, ShmChannelConformance,
    ::testing::Combine(
        ::testing::Values(2, 3), ::testing::Values(4),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    CaseName);

TEST(ShmChannelTest, InvalidRingSizesAreRefused) {
  for (const size_t cells : {size_t{0}, size_t{2}, size_t{48}}) {
    hvdlite::testing::UnimplementedCommunicator node;
    const auto channel = CreateShmChannel(node, {.cells_per_ring = cells});
    EXPECT_EQ(channel.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(channel.status().message()),
                HasSubstr("power of two"));
  }
}

TEST(ShmChannelTest, AwakeReceiverIsNotWoken) {
  OnRanks(2, {}, [](ControlChannel& channel, const auto& barrier) {
    if (channel.rank() == 0) {
      barrier();
      ASSERT_TRUE(channel.Send(1, "first").ok());
      barrier();
      barrier();
      ASSERT_TRUE(channel.Send(1, "second").ok());
      barrier();
      return;
    }
    pollfd doorbell = {channel.wake_descriptors()[0], POLLIN, 0};
    barrier();
    barrier();
    EXPECT_EQ(poll(&doorbell, 1, 0), 0);
    // It must not go to sleep, either.
    EXPECT_FALSE(channel.PrepareToSleep());
    EXPECT_EQ(Receive(channel).bytes, "first");
    EXPECT_FALSE((*channel.TryReceive()).has_value());
    EXPECT_TRUE(channel.PrepareToSleep());
    EXPECT_EQ(poll(&doorbell, 1, 0), 0);
    barrier();
    barrier();
    EXPECT_EQ(poll(&doorbell, 1, 0), 1);
    EXPECT_FALSE(channel.PrepareToSleep());
    EXPECT_EQ(Receive(channel).bytes, "second");
    EXPECT_EQ(poll(&doorbell, 1, 0), 0);
  });
}

TEST(ShmChannelTest, SleeperIsWokenToSendTheRestOfAMessage) {
  OnRanks(2, {.cells_per_ring = 4}, [](ControlChannel& channel, const auto&) {
    const std::string large(100'000, 'x');
    if (channel.rank() == 1) {
      EXPECT_TRUE(Receive(channel).bytes == large);
      ASSERT_TRUE(channel.Send(0, "thanks").ok());
      return;
    }
    ASSERT_TRUE(channel.Send(1, large).ok());
    EXPECT_EQ(Receive(channel).bytes, "thanks");
  });
}

TEST(ShmChannelTest, RanksThatFlushLargeMessagesToEachOtherDoNotBlock) {
  OnRanks(4, {}, [](ControlChannel& channel, const auto&) {
    for (int to = 0; to < 4; ++to) {
      if (to == channel.rank()) continue;
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(channel
                        .Send(to, absl::StrCat(channel.rank(), ".", i) +
                                      std::string(200'000, 'x'))
                        .ok());
      }
    }
    EXPECT_TRUE(channel.Flush(absl::InfiniteDuration()).ok());
    std::map<int, int> next;
    for (int i = 0; i < 9; ++i) {
      const ControlMessage message = Receive(channel);
      EXPECT_EQ(message.bytes.substr(0, 3),
                absl::StrCat(message.from, ".", next[message.from]++));
    }
    // Messages that Flush has received must also prevent a sleep; see Receive.
  });
}

TEST(ShmChannelTest, FlushTimesOutAndNamesTheRank) {
  OnRanks(3, {.rank_names = {"rank 4 (h)", "rank 5 (h)", "rank 6 (h)"}},
          [](ControlChannel& channel, const auto& barrier) {
            const std::string large(100'000, 'x');
            if (channel.rank() == 0) {
              ASSERT_TRUE(channel.Send(1, "fits").ok());
              EXPECT_TRUE(channel.Flush(absl::ZeroDuration()).ok());
              ASSERT_TRUE(channel.Send(2, large).ok());
              ASSERT_TRUE(channel.Send(2, "behind it").ok());
              const absl::Status status = channel.Flush(absl::Milliseconds(1));
              EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
              EXPECT_THAT(std::string(status.message()),
                          HasSubstr("2 messages were not delivered within 1ms; "
                                    "the first waits for rank 6 (h)"));
            }
            barrier();
            if (channel.rank() == 0) {
              EXPECT_TRUE(channel.Flush(absl::InfiniteDuration()).ok());
            } else if (channel.rank() == 2) {
              EXPECT_TRUE(Receive(channel).bytes == large);
              EXPECT_EQ(Receive(channel).bytes, "behind it");
            }
          });
}

TEST(ShmChannelTest, ReceiverTakesTurnsAmongSenders) {
  OnRanks(3, {}, [](ControlChannel& channel, const auto& barrier) {
    if (channel.rank() != 0) {
      for (int i = 0; i < 10; ++i) ASSERT_TRUE(channel.Send(0, "").ok());
    }
    barrier();
    if (channel.rank() != 0) return;
    const int first = Receive(channel).from;
    EXPECT_NE(Receive(channel).from, first);
  });
}

TEST(ShmChannelTest, SendersBeyondTheFirstWordAreReceived) {
  OnRanks(70, {.cells_per_ring = 4}, [](ControlChannel& channel, const auto&) {
    if (channel.rank() == 0) {
      for (int i = 0; i < 69; ++i) {
        const ControlMessage message = Receive(channel);
        EXPECT_EQ(message.bytes, absl::StrCat(message.from));
        ASSERT_TRUE(channel.Send(message.from, "heard").ok());
      }
    } else {
      ASSERT_TRUE(channel.Send(0, absl::StrCat(channel.rank())).ok());
      EXPECT_EQ(Receive(channel).bytes, "heard");
    }
  });
}

// A lost wake-up stops the ranks for ever.
TEST(ShmChannelTest, RanksThatAlwaysSleepMakeProgress) {
  constexpr int kRounds = hvdlite::testing::UnlessSanitized(50'000, 10'000);
  OnRanks(2, {}, [](ControlChannel& channel, const auto&) {
    const int other = 1 - channel.rank();
    for (int round = 0; round < kRounds; ++round) {
      // Both send first, and then sleep.
      ASSERT_TRUE(channel.Send(other, "x").ok());
      ASSERT_EQ(Receive(channel).bytes, "x");
    }
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
