#include <poll.h>

#include <barrier>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;

constexpr int kSize = 3;

std::vector<std::unique_ptr<ControlChannel>> Watched(
    std::function<absl::Status()> look) {
  auto channels = CreateInProcessChannels(kSize);
  EXPECT_TRUE(channels.ok()) << channels.status();
  std::vector<std::unique_ptr<ControlChannel>> watched;
  for (std::unique_ptr<ControlChannel>& channel : *channels) {
    auto one =
        CreateWatchedChannel(std::move(channel), look, absl::Milliseconds(1));
    EXPECT_TRUE(one.ok()) << one.status();
    watched.push_back(*std::move(one));
  }
  return watched;
}

// Waits until a descriptor is readable, like a thread that sleeps on them.
void SleepOn(const ControlChannel& channel) {
  std::vector<pollfd> descriptors;
  for (const int descriptor : channel.wake_descriptors()) {
    descriptors.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  ASSERT_FALSE(descriptors.empty());
  poll(descriptors.data(), descriptors.size(), /*timeout=*/-1);
}

class WatchedChannelConformance
    : public ::testing::TestWithParam<ControlChannelCheck> {};

TEST_P(WatchedChannelConformance, Conforms) {
  auto channels = Watched([] { return absl::OkStatus(); });
  std::barrier barrier(kSize);
  hvdlite::testing::RunRanks(kSize, [&](int rank) {
    GetParam().run(*channels[static_cast<size_t>(rank)],
                   [&] { barrier.arrive_and_wait(); });
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, WatchedChannelConformance,
    ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WatchedChannelTest, SleeperIsWokenForTheCheck) {
  int looks = 0;
  auto channels = Watched([&] {
    ++looks;
    return absl::OkStatus();
  });
  while (looks < 3) {
    ASSERT_TRUE(channels[0]->PrepareToSleep());
    SleepOn(*channels[0]);
    const auto received = channels[0]->TryReceive();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_FALSE(received->has_value());
  }
}

TEST(WatchedChannelTest, ErrorComesAfterArrivedMessagesAndPersists) {
  auto channels =
      Watched([] { return absl::UnavailableError("rank 2 has died"); });
  ASSERT_TRUE(channels[1]->Send(0, "the last word").ok());
  SleepOn(*channels[0]);
  const auto received = channels[0]->TryReceive();
  ASSERT_TRUE(received.ok()) << received.status();
  ASSERT_TRUE(received->has_value());
  EXPECT_EQ((*received)->bytes, "the last word");
  absl::Status broken;
  while (broken.ok()) {
    SleepOn(*channels[0]);
    broken = channels[0]->TryReceive().status();
  }
  EXPECT_EQ(broken, absl::UnavailableError("rank 2 has died"));
  EXPECT_EQ(channels[0]->TryReceive().status(), broken);
  // Other ranks can still be informed.
  EXPECT_TRUE(channels[0]->Send(1, "farewell").ok());
  EXPECT_EQ((*channels[1]->TryReceive())->bytes, "farewell");
}

}  // namespace
}  // namespace hvdlite::negotiation
