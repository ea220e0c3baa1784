#include "negotiation/ucx/gather_or_fail.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_communicator.h"
#include "tests/testing/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;

TEST(GatherOrFailTest, EveryRankGetsTheValuesOfAll) {
  hvdlite::testing::RunInProcessRanks(3, [](collective::Communicator& world) {
    // Of different lengths, one of them empty, with zeros inside.
    const auto values =
        GatherOrFail(world, std::string(world.rank(), '\0'), {});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(*values,
                ElementsAre("", std::string(1, '\0'), std::string(2, '\0')));
  });
}

TEST(GatherOrFailTest, OneErrorFailsOnEveryRankNamingTheLowest) {
  const std::vector<std::string> hosts = {"a", "b", "c"};
  hvdlite::testing::RunInProcessRanks(3, [&](collective::Communicator& world) {
    const auto values = GatherOrFail(
        world,
        world.rank() == 0
            ? absl::StatusOr<std::string>("fine")
            : absl::InternalError(absl::StrCat("no device ", world.rank())),
        hosts);
    EXPECT_EQ(values.status(),
              absl::UnavailableError("on rank 1 (b): no device 1"));
  });
}

TEST(GatherOrFailTest, ErrorsOfTheCommunicatorAreReturned) {
  hvdlite::testing::UnimplementedCommunicator communicator;
  EXPECT_EQ(GatherOrFail(communicator, std::string("x"), {}).status(),
            absl::UnimplementedError("Allgather"));
}

}  // namespace
}  // namespace hvdlite::negotiation
