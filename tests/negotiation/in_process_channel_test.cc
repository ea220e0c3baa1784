#include "negotiation/in_process/in_process_channel.h"

#include <functional>

#include "gtest/gtest.h"
#include "tests/testing/control_channel_conformance.h"
#include "tests/testing/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

class InProcessChannelTest : public ::testing::TestWithParam<int> {
 protected:
  void OnEveryRank(const std::function<void(ControlChannel&)>& check) {
    auto channels = CreateInProcessChannels(GetParam());
    ASSERT_TRUE(channels.ok()) << channels.status();
    hvdlite::testing::RunRanks(GetParam(),
                               [&](int rank) { check(*(*channels)[rank]); });
  }
};

TEST_P(InProcessChannelTest, MessagesArriveInOrder) {
  OnEveryRank(hvdlite::testing::CheckMessagesArriveInOrder);
}

TEST_P(InProcessChannelTest, RingKeepsTurning) {
  OnEveryRank(hvdlite::testing::CheckRing);
}

INSTANTIATE_TEST_SUITE_P(Sizes, InProcessChannelTest,
                         ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace hvdlite::negotiation
