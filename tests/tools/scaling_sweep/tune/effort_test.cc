#include "tools/scaling_sweep/tune/effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/scaling_sweep/tune/tune_spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::HasSubstr;

TEST(EffortTest, PlanFitsIntoTheTimeForAnyRun) {
  const Wishes wishes = WishesOf(TuneSpec(), /*worlds=*/3, /*minutes=*/15);
  int64_t before = 1 << 30;
  for (const double seconds : {0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 100.0}) {
    const auto effort = EffortFor(wishes, seconds, 900);
    ASSERT_TRUE(effort.ok()) << seconds << " s: " << effort.status();
    EXPECT_LE(static_cast<double>(effort->runs()) * seconds, 900) << seconds;
    EXPECT_LE(effort->runs(), before) << seconds;
    EXPECT_GE(effort->final_rounds, 3) << seconds;
    EXPECT_GE(effort->worlds, 1) << seconds;
    before = effort->runs();
  }
}

TEST(EffortTest, ShortRunsGetTheMaximumEffort) {
  const Wishes wishes = WishesOf(TuneSpec(), 3, 15);
  const Effort effort = EffortFor(wishes, 1, 900).value();
  EXPECT_EQ(effort.candidates, 24);
  EXPECT_EQ(effort.worlds, 3);
  EXPECT_EQ(effort.world_rounds, 2);
  EXPECT_EQ(effort.final_rounds, 8);
  EXPECT_EQ(effort.compared, 12);
}

TEST(EffortTest, LongerSearchHasMoreCandidates) {
  EXPECT_EQ(WishesOf(TuneSpec(), 3, 90).candidates, 6 * 24);
  EXPECT_EQ(WishesOf(TuneSpec(), 3, 3).candidates, 24);
  Spec spec = TuneSpec();
  spec.mutable_tune()->set_candidates(5);
  EXPECT_EQ(WishesOf(spec, 3, 90).candidates, 5);
}

TEST(EffortTest, TooLittleTimeIsAnErrorWithTheNeededTime) {
  for (const double seconds : {150.0, 2000.0}) {
    const auto effort = EffortFor({.worlds = 3}, seconds, 900);
    EXPECT_EQ(effort.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_THAT(
      std::string(EffortFor({.worlds = 3}, 150, 900).status().message()),
      HasSubstr("a run of the defaults takes 2:30, and a search needs at "
                "least 9 runs: 22:30, but only 15:00 are left; use --minutes "
                "29 or more"));
  EXPECT_TRUE(EffortFor({.worlds = 3}, 150, 25 * 60).ok());
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
