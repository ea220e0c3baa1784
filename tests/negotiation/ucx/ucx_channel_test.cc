// Channels over UCX whose ranks are threads of this process.
#include "negotiation/ucx/ucx_channel.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/control_channel_conformance.h"
#include "tests/testing/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;
using ::testing::AllOf;
using ::testing::HasSubstr;

// What the tests expect does not depend on the variables of who runs them.
UcxChannelOptions Options() {
  UcxChannelOptions options;
  options.environment = base::FakeEnvironment({});
  return options;
}

class UcxChannelConformanceTest
    : public ::testing::TestWithParam<std::tuple<int, ControlChannelCheck>> {};

TEST_P(UcxChannelConformanceTest, Conforms) {
  const auto& [size, check] = GetParam();
  hvdlite::testing::RunInProcessRanks(
      size, [&check = check](collective::Communicator& world) {
        const auto barrier = [&] { ASSERT_TRUE(world.Barrier().ok()); };
        auto channel = CreateUcxChannel(world, Options());
        ASSERT_TRUE(channel.ok()) << channel.status();
        EXPECT_EQ((*channel)->rank(), world.rank());
        EXPECT_EQ((*channel)->size(), world.size());
        check.run(**channel, barrier);
        barrier();
      });
}

INSTANTIATE_TEST_SUITE_P(
    All, UcxChannelConformanceTest,
    ::testing::Combine(
        ::testing::Range(1, 9),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    [](const auto& info) {
      return absl::StrCat(std::get<1>(info.param).name, "_",
                          std::get<0>(info.param));
    });

TEST(UcxChannelTest, NeighboursAreConnectedThoughOnlyOneNamesTheOther) {
  hvdlite::testing::RunInProcessRanks(4, [](collective::Communicator& world) {
    UcxChannelOptions options = Options();
    if (world.rank() == 0) options.neighbours = {1, 2, 3};
    auto channel = CreateUcxChannel(world, options);
    ASSERT_TRUE(channel.ok()) << channel.status();
    // The messages that tried the connections are not seen by the caller.
    hvdlite::testing::CheckMessagesArriveInOrder(**channel);
    ASSERT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, FailureOfOneRankIsTheSameErrorOnAll) {
  const std::vector<std::string> hosts = {"red", "green", "blue"};
  hvdlite::testing::RunInProcessRanks(3, [&](collective::Communicator& world) {
    UcxChannelOptions options = Options();
    options.host_of_rank = hosts;
    if (world.rank() == 1) options.transports = "no_such_transport";
    const auto channel = CreateUcxChannel(world, options);
    EXPECT_TRUE(absl::IsUnavailable(channel.status()));
    EXPECT_THAT(
        std::string(channel.status().message()),
        AllOf(HasSubstr("rank 1 (green): UCX: "), HasSubstr("ucp_")));
    // Everybody is ready for another channel.
    EXPECT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, NeighboursThatCannotReachEachOtherAreFoundOutAtTheStart) {
  hvdlite::testing::RunInProcessRanks(3, [](collective::Communicator& world) {
    UcxChannelOptions options = Options();
    options.neighbours = {(world.rank() + 1) % 3};
    // Its loopback transport reaches nobody else.
    if (world.rank() == 2) options.transports = "self";
    const auto channel = CreateUcxChannel(world, options);
    EXPECT_TRUE(absl::IsUnavailable(channel.status())) << channel.status();
    EXPECT_THAT(std::string(channel.status().message()), HasSubstr("rank 2"));
    EXPECT_TRUE(world.Barrier().ok());
  });
}

TEST(UcxChannelTest, UsersChoiceOfTransportsWins) {
  for (const char* name : {"UCX_TLS", "HVDLITE_UCX_TLS"}) {
    hvdlite::testing::RunInProcessRanks(
        2, [&](collective::Communicator& world) {
          UcxChannelOptions options = Options();
          // UCX itself sees no such variable here, and takes its own default.
          options.environment = base::FakeEnvironment({{name, "all"}});
          options.transports = "no_such_transport";
          EXPECT_TRUE(CreateUcxChannel(world, options).ok()) << name;
          EXPECT_TRUE(world.Barrier().ok());
        });
  }
}

TEST(UcxChannelTest, FlushEndsWithItsTimeoutWhenNobodyReceives) {
  hvdlite::testing::RunInProcessRanks(2, [](collective::Communicator& world) {
    auto channel = CreateUcxChannel(world, Options()).value();
    if (world.rank() == 0) {
      ASSERT_TRUE(channel->Send(1, std::string(10'000'000, 'x')).ok());
      EXPECT_TRUE(
          absl::IsDeadlineExceeded(channel->Flush(absl::Milliseconds(1))));
      ASSERT_TRUE(world.Barrier().ok());
      EXPECT_TRUE(channel->Flush(absl::Seconds(60)).ok());
    } else {
      ASSERT_TRUE(world.Barrier().ok());
      EXPECT_EQ(hvdlite::testing::Receive(*channel).bytes.size(), 10'000'000);
    }
    ASSERT_TRUE(world.Barrier().ok());
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
