// Control channels between processes that end, with and without an error.
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/shm/shm_channel.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/worlds/forked_rank.h"

namespace hvdlite::negotiation {
namespace {

using collective::Communicator;
using hvdlite::testing::ForkedRank;
using hvdlite::testing::Receive;
using hvdlite::testing::SleepOn;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<ControlChannel> NewChannel(Communicator& node) {
  auto channel = CreateShmChannel(
      node, {.rank_names = {"rank 7 (left)", "rank 8 (left)"}});
  if (!channel.ok()) {
    ADD_FAILURE() << channel.status();
    _exit(1);
  }
  return *std::move(channel);
}

ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       {});
}

// Sleeps until the channel returns a message or an error.
absl::StatusOr<std::optional<ControlMessage>> Next(ControlChannel& channel) {
  while (true) {
    auto next = channel.TryReceive();
    if (!next.ok() || next->has_value()) return next;
    SleepOn(channel);
  }
}

void ExpectDeath(const absl::Status& status, const ForkedRank& peer) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("rank 8 (left) has died: its process ", peer.process(),
                         " has ended"));
}

// No message is left, and sleepers stay asleep.
void ExpectQuiet(ControlChannel& channel) {
  const auto nothing = channel.TryReceive();
  EXPECT_TRUE(nothing.ok() && !nothing->has_value());
  EXPECT_TRUE(channel.PrepareToSleep());
  for (const int descriptor : channel.wake_descriptors()) {
    pollfd watched = {descriptor, POLLIN, 0};
    EXPECT_EQ(poll(&watched, 1, 0), 0);
  }
}

TEST(ShmChannelDeathTest, SleeperLearnsOfADeathOnce) {
  ForkedRank peer([](Communicator& node) {
    const auto channel = NewChannel(node);
    channel->Send(0, "alive").IgnoreError();
    pause();
  });
  const auto channel = NewChannel(peer.communicator());
  EXPECT_EQ(Receive(*channel).bytes, "alive");
  kill(peer.process(), SIGKILL);
  ExpectDeath(Next(*channel).status(), peer);
  ExpectQuiet(*channel);
}

TEST(ShmChannelDeathTest, AwakeRankLearnsOfADeath) {
  ForkedRank peer([](Communicator& node) {
    const auto channel = NewChannel(node);
    raise(SIGKILL);
  });
  const auto channel = NewChannel(peer.communicator());
  auto next = channel->TryReceive();
  while (next.ok()) next = channel->TryReceive();
  ExpectDeath(next.status(), peer);
}

TEST(ShmChannelDeathTest, MessagesSentBeforeTheDeathComeFirst) {
  ForkedRank peer([](Communicator& node) {
    const auto channel = NewChannel(node);
    for (int i = 0; i < 5; ++i) {
      channel->Send(0, absl::StrCat("message ", i)).IgnoreError();
    }
    // This message never arrives completely.
    channel->Send(0, std::string(1'000'000, 'x')).IgnoreError();
    raise(SIGKILL);
  });
  const auto channel = NewChannel(peer.communicator());
  EXPECT_FALSE(peer.WaitForEnd());
  SleepOn(*channel);
  for (int i = 0; i < 5; ++i) {
    const auto next = channel->TryReceive();
    ASSERT_TRUE(next.ok() && next->has_value()) << next.status();
    EXPECT_EQ((*next)->bytes, absl::StrCat("message ", i));
  }
  // A rank that ends now does not see the death; one that goes to sleep does.
  auto next = channel->TryReceive();
  EXPECT_TRUE(next.ok() && !next->has_value());
  EXPECT_TRUE(SleepOn(*channel));
  next = channel->TryReceive();
  EXPECT_TRUE(next.ok() && !next->has_value());
  EXPECT_FALSE(channel->PrepareToSleep());
  ExpectDeath(channel->TryReceive().status(), peer);
  ExpectQuiet(*channel);
}

TEST(ShmChannelDeathTest, DeathEndsAFlush) {
  ForkedRank peer([](Communicator& node) {
    const auto channel = NewChannel(node);
    channel->Send(0, "ready").IgnoreError();
    pause();
  });
  const auto channel = NewChannel(peer.communicator());
  EXPECT_EQ(Receive(*channel).bytes, "ready");
  ASSERT_TRUE(channel->Send(1, std::string(1'000'000, 'x')).ok());
  kill(peer.process(), SIGKILL);
  ExpectDeath(channel->Flush(absl::InfiniteDuration()), peer);
}

TEST(ShmChannelDeathTest, PeerThatEndedCleanlyDoesNoHarm) {
  ForkedRank peer([](Communicator& node) {
    const auto channel = NewChannel(node);
    ForkedRank::Require(Receive(*channel).bytes == "bye", "bye arrives");
    channel->Send(0, "bye bye").IgnoreError();
    const auto nothing = channel->TryReceive();
    ForkedRank::Require(channel->PrepareToSleep(), "it may sleep");
  });
  const auto channel = NewChannel(peer.communicator());
  ASSERT_TRUE(channel->Send(1, "bye").ok());
  EXPECT_TRUE(peer.WaitForEnd());
  EXPECT_EQ(Receive(*channel).bytes, "bye bye");
  // It has armed its doorbell, but no process reads the doorbell any more.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(channel->Send(1, "are you there?").ok());
  }
}

TEST(ShmChannelDeathTest, ChannelLeavesNoDescriptorsBehind) {
  const ptrdiff_t before = OpenDescriptors();
  for (int i = 0; i < 3; ++i) {
    ForkedRank peer([](Communicator& node) {
      const auto channel = NewChannel(node);
      raise(SIGKILL);
    });
    const auto channel = NewChannel(peer.communicator());
    EXPECT_FALSE(Next(*channel).ok());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(ShmChannelDeathTest, RankWithoutDescriptorsFailsOnAllRanks) {
  // Each number of descriptors that is too low fails at another place.
  const ptrdiff_t before = OpenDescriptors();
  bool succeeded = false;
  int failures = 0;
  for (rlim_t most = 3; !succeeded && most < 100; ++most) {
    ForkedRank peer([&](Communicator& node) {
      const rlimit limit = {most, most};
      setrlimit(RLIMIT_NOFILE, &limit);
      const auto channel = CreateShmChannel(node);
      ForkedRank::Require(channel.ok() || absl::IsUnavailable(channel.status()),
                          "the error is Unavailable");
    });
    const auto channel = CreateShmChannel(peer.communicator());
    EXPECT_TRUE(peer.WaitForEnd());
    succeeded = channel.ok();
    if (succeeded) break;
    ++failures;
    EXPECT_EQ(channel.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(channel.status().message()),
                AllOf(HasSubstr("rank 1: "), HasSubstr("Too many open files")));
  }
  EXPECT_TRUE(succeeded);
  EXPECT_GE(failures, 5);
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace hvdlite::negotiation
