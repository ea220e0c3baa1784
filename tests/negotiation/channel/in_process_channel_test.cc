#include <barrier>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;

class InProcessChannelTest
    : public ::testing::TestWithParam<std::tuple<int, ControlChannelCheck>> {};

TEST_P(InProcessChannelTest, Conforms) {
  const auto& [size, check] = GetParam();
  auto channels = CreateInProcessChannels(size);
  ASSERT_TRUE(channels.ok()) << channels.status();
  std::barrier barrier(size);
  hvdlite::testing::RunRanks(size, [&, &check = check](int rank) {
    check.run(*(*channels)[rank], [&] { barrier.arrive_and_wait(); });
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, InProcessChannelTest,
    ::testing::Combine(
        ::testing::Range(1, 9),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    [](const auto& info) {
      return absl::StrCat(std::get<1>(info.param).name, "_",
                          std::get<0>(info.param));
    });

TEST(SingleRankChannelTest, Conforms) {
  const auto channel = CreateSingleRankChannel();
  ASSERT_TRUE(channel.ok()) << channel.status();
  for (const ControlChannelCheck& check :
       hvdlite::testing::kControlChannelChecks) {
    SCOPED_TRACE(check.name);
    check.run(**channel, [] {});
  }
}

TEST(SingleRankChannelTest, NeedsNoPollingAndReachesNoRank) {
  const auto channel = CreateSingleRankChannel();
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_EQ((*channel)->wake_descriptors().size(), 1);
  EXPECT_TRUE((*channel)->PrepareToSleep());
  EXPECT_FALSE((*channel)->Send(1, "lost").ok());
}

}  // namespace
}  // namespace hvdlite::negotiation
