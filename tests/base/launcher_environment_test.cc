#include "base/launcher_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hvdlite::base {
namespace {

Environment With(absl::string_view name, const std::string& value) {
  return FakeEnvironment({{std::string(name), value}});
}

TEST(LauncherEnvironmentTest, EveryLauncherIsRecognizedByItsRankVariable) {
  EXPECT_FALSE(IsLaunched(FakeEnvironment({{"PATH", "/bin"}})));
  EXPECT_TRUE(IsFirstOfLauncher(FakeEnvironment({{"PATH", "/bin"}})));
  std::set<std::string> ranks;
  for (const LauncherVariables& launcher : AllLauncherVariables()) {
    SCOPED_TRACE(launcher.launcher);
    ranks.insert(std::string(launcher.rank));
    EXPECT_TRUE(IsLaunched(With(launcher.rank, "0")));
    if (!launcher.size.empty()) {
      EXPECT_TRUE(IsLaunched(With(launcher.size, "1")));
    }
    EXPECT_TRUE(IsFirstOfLauncher(With(launcher.rank, "0")));
    EXPECT_FALSE(IsFirstOfLauncher(With(launcher.rank, "1")));
    EXPECT_EQ(RankOfLauncher(With(launcher.rank, "12")), 12);
    EXPECT_EQ(RankOfLauncher(With(launcher.rank, "many")), std::nullopt);
  }
  EXPECT_THAT(ranks, ::testing::UnorderedElementsAre(
                         "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID",
                         "PMIX_RANK", "SLURM_PROCID"));
}

TEST(LauncherEnvironmentTest, NonzeroRankOfAnyLauncherIsNotFirst) {
  EXPECT_FALSE(IsFirstOfLauncher(
      FakeEnvironment({{"OMPI_COMM_WORLD_RANK", "0"}, {"SLURM_PROCID", "1"}})));
}

TEST(LauncherEnvironmentTest, SeveralRanksAreReportedWithTheVariable) {
  for (const char* variable :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    SCOPED_TRACE(variable);
    const auto promised = SeveralRanksPromised(With(variable, "4"));
    ASSERT_TRUE(promised.has_value());
    EXPECT_EQ(promised->count, 4);
    EXPECT_EQ(promised->variable, variable);
    for (const char* no_promise : {"1", "0", "", "many"}) {
      EXPECT_FALSE(
          SeveralRanksPromised(With(variable, no_promise)).has_value());
    }
  }
  EXPECT_FALSE(SeveralRanksPromised(FakeEnvironment({})).has_value());
  EXPECT_EQ(
      SeveralRanksPromised(
          FakeEnvironment({{"PMI_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}))
          ->variable,
      "SLURM_STEP_NUM_TASKS");
}

}  // namespace
}  // namespace hvdlite::base
