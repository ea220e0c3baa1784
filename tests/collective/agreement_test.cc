#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collective/communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::collective {
namespace {

using ::testing::ElementsAre;

TEST(GatherOrFailTest, EveryRankGetsTheValuesOfAll) {
  hvdlite::testing::RunInProcessRanks(3, [](Communicator& world) {
    // Values of different lengths, one of them empty, with zeros inside.
    const auto values = GatherOrFail(world, std::string(world.rank(), '\0'));
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT(*values,
                ElementsAre("", std::string(1, '\0'), std::string(2, '\0')));
  });
}

TEST(GatherOrFailTest, OneErrorFailsOnEveryRankAndNamesTheLowest) {
  const std::vector<std::string> hosts = {"a", "b", "c"};
  hvdlite::testing::RunInProcessRanks(3, [&](Communicator& world) {
    const auto values = GatherOrFail(
        world,
        world.rank() == 0
            ? absl::StatusOr<std::string>("fine")
            : absl::InternalError(absl::StrCat("no device ", world.rank())),
        hosts);
    EXPECT_EQ(values.status(),
              absl::UnavailableError("rank 1 (b): no device 1"));
  });
}

TEST(GatherOrFailTest, ErrorsOfTheCommunicatorAreReturned) {
  hvdlite::testing::UnimplementedCommunicator communicator;
  EXPECT_EQ(GatherOrFail(communicator, std::string("x")).status(),
            absl::UnimplementedError("Allgather"));
}

TEST(AgreeOnTest, EveryRankGetsTheReasonOfTheLowestFailedRank) {
  hvdlite::testing::RunInProcessRanks(4, [&](Communicator& node) {
    EXPECT_TRUE(AgreeOn(node, absl::OkStatus()).ok());
    const absl::Status own =
        node.rank() == 0 || node.rank() == 2
            ? absl::OkStatus()
            : absl::InternalError(absl::StrCat("reason ", node.rank()));
    const absl::Status status = AgreeOn(node, own);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::string(status.message()), "rank 1: reason 1");
    // The communicator is still usable.
    EXPECT_TRUE(AgreeOn(node, absl::OkStatus()).ok());
  });
}

TEST(EvenRowsTest, FirstRanksGetTheRemainder) {
  EXPECT_THAT(EvenRows(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(EvenRows(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(EvenRows(9, 3), ElementsAre(3, 3, 3));
  EXPECT_THAT(EvenRows(2, 4), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(EvenRows(0, 2), ElementsAre(0, 0));
  EXPECT_THAT(EvenRows(5'000'000'001, 2),
              ElementsAre(2'500'000'001, 2'500'000'000));
}

}  // namespace
}  // namespace hvdlite::collective
