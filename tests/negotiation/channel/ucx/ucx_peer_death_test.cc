// What other ranks see when a process dies. Each test runs in a process of its
// own with children, since UCX does not survive a fork.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/ucx/ucx_channel.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/worlds/forked_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ForkedCommunicator;
using hvdlite::testing::ForkedWorld;
using hvdlite::testing::Receive;
using hvdlite::testing::SleepOn;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<ControlChannel> Create(ForkedCommunicator& world) {
  static const std::vector<std::string> hosts = {"red", "green", "blue"};
  UcxChannelOptions options;
  options.environment = base::FakeEnvironment({});
  options.host_of_rank = hosts;
  if (world.rank() > 0) {
    options.neighbours = {0};
  } else {
    for (int r = 1; r < world.size(); ++r) options.neighbours.push_back(r);
  }
  return CreateUcxChannel(world, options).value();
}

// Sleeps until TryReceive fails; returns the messages received before that.
std::vector<ControlMessage> ReceiveUntilError(ControlChannel& channel,
                                              absl::Status& error) {
  std::vector<ControlMessage> messages;
  for (;;) {
    auto received = channel.TryReceive();
    if (!received.ok()) {
      error = received.status();
      return messages;
    }
    if (received->has_value()) {
      messages.push_back(**std::move(received));
    } else {
      SleepOn(channel);
    }
  }
}

// Runs `test` in a child process; its failures fail this test.
void InNewProcess(const std::function<void()>& test) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    test();
    std::fflush(nullptr);
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ASSERT_GE(pid, 0);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "status " << status << "; see above";
}

TEST(UcxPeerDeathTest, DeathOfANeighbourWakesASleeperAndIsNamed) {
  InNewProcess([] {
    ForkedWorld world(3, [](ForkedCommunicator& communicator) {
      const auto channel = Create(communicator);
      pause();
      return 1;
    });
    const auto channel = Create(world.communicator());
    world.Kill(1);
    absl::Status error;
    EXPECT_TRUE(ReceiveUntilError(*channel, error).empty());
    EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr("rank 1 (green)"));
    EXPECT_EQ(channel->TryReceive().status(), error);
    EXPECT_EQ(channel->Send(1, "x"), error);
    EXPECT_EQ(channel->Flush(absl::InfiniteDuration()), error);
  });
}

TEST(UcxPeerDeathTest, ArrivedMessagesAreReceivedAndOthersCanBeInformed) {
  InNewProcess([] {
    ForkedWorld world(3, [](ForkedCommunicator& communicator) {
      const auto channel = Create(communicator);
      if (communicator.rank() == 1) {
        if (!channel->Send(0, "last words").ok()) return 1;
        if (!channel->Flush(absl::InfiniteDuration()).ok()) return 1;
        communicator.Barrier().IgnoreError();
        pause();
      }
      communicator.Barrier().IgnoreError();
      return Receive(*channel).bytes == "rank 1 is dead" ? 0 : 1;
    });
    const auto channel = Create(world.communicator());
    // Only now is the message known to be on its way.
    EXPECT_TRUE(world.communicator().Barrier().ok());
    world.Kill(1);
    absl::Status error;
    const auto messages = ReceiveUntilError(*channel, error);
    ASSERT_EQ(messages.size(), 1);
    EXPECT_EQ(messages[0].bytes, "last words");
    EXPECT_TRUE(channel->Send(2, "rank 1 is dead").ok());
    EXPECT_EQ(channel->Flush(absl::Seconds(60)), error);
    EXPECT_EQ(world.Wait(2), 0);
  });
}

TEST(UcxPeerDeathTest, DeathDuringLargeMessagesIsNamed) {
  InNewProcess([] {
    ForkedWorld world(2, [](ForkedCommunicator& communicator) {
      const auto channel = Create(communicator);
      for (int i = 0; i < 20; ++i) {
        if (!channel->Send(0, std::string(3'000'000, 'x')).ok()) return 1;
      }
      Receive(*channel);
      raise(SIGKILL);
      return 1;
    });
    auto channel = Create(world.communicator());
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(channel->Send(1, std::string(3'000'000, 'x')).ok());
    }
    absl::Status error;
    ReceiveUntilError(*channel, error);
    EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    EXPECT_THAT(std::string(error.message()), HasSubstr("rank 1 (green)"));
    channel.reset();  // this returns
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
