#include "trainers/synthetic/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(LinePrefixerTest, PrefixesWholeLinesFromAnyPieces) {
  LinePrefixer prefixer("> ");
  EXPECT_EQ(prefixer.Add("a"), "");
  EXPECT_EQ(prefixer.Add("b\nc\n\nd"), "> ab\n> c\n> \n");
  EXPECT_EQ(prefixer.Finish(), "> d\n");
  EXPECT_EQ(prefixer.Finish(), "");
}

TEST(InstancesTest, RanksOfALauncherAreAnErrorThatNamesTheVariable) {
  EXPECT_THAT(
      [] {
        RequireOneProcess(base::FakeEnvironment({{"PMI_SIZE", "4"}}));
      },
      ThrowsMessage<support::InputError>(
          AllOf(HasSubstr("started 4"), HasSubstr("PMI_SIZE"))));
}

TEST(InstancesTest, OneRankOfALauncherIsAccepted) {
  RequireOneProcess(base::FakeEnvironment({}));
  RequireOneProcess(base::FakeEnvironment({{"OMPI_COMM_WORLD_SIZE", "1"}}));
}

}  // namespace
}  // namespace hvdlite::trainers
