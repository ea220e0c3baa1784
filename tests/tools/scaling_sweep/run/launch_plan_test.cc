#include "tools/scaling_sweep/run/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/machine.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The output of hvdliterun --dry-run=json, here on several lines.
std::string Answer(const std::string& hosts, const std::string& core_here) {
  const auto answer = nlohmann::ordered_json::parse(absl::StrCat(
      R"({"format": 1, "ranks": 2, "allocation": "this host",
          "machine": "1 package, 1 NUMA node, 4 cores", "openmp": "libgomp",
          "command": ["mpirun", "-np", "2", "hvdliterun", "--", "prog"],
          "launcher_environment": {},
          "environment": [
            {"name": "BLAS", "value": "fast", "source": "--set"},
            {"name": "MALLOC_MMAP_MAX_", "value": "0", "source": "default"},
            {"name": "TCMALLOC_RELEASE_RATE", "value": "0",
             "source": "--alloc tcmalloc"}],
          "hosts": [)",
      hosts, R"(], "openblas_core_here": ")", core_here, R"(", "notes": []})"));
  return answer.dump() + "\n";
}

constexpr char kHost[] =
    R"({"names": ["localhost"], "ranks_each": 2, "planned": true, "ranks": [
         {"local_rank": 0, "threads": 2, "oversubscribed": false,
          "environment": [
            {"name": "HVDLITE_COORDINATOR_CORE", "value": "none",
             "source": "cores of the rank"},
            {"name": "OMP_NUM_THREADS", "value": "2",
             "source": "cores of the rank"},
            {"name": "OMP_PLACES", "value": "{0},{1}",
             "source": "cores of the rank"}]},
         {"local_rank": 1, "threads": 2, "oversubscribed": false,
          "environment": [
            {"name": "OMP_PLACES", "value": "{2},{3}",
             "source": "cores of the rank"}]}]})";

TEST(LaunchPlanTest, PlanHasThreadsAndDefaultsOfTheLauncher) {
  // Other programs may print text around the answer.
  const auto plan = ParseLaunchPlan(absl::StrCat(
      "a module is loaded\n", Answer(kHost, "Haswell"), "{and unloaded}\n"));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->hosts, 1);
  EXPECT_EQ(plan->threads, 2);
  EXPECT_FALSE(plan->oversubscribed);
  EXPECT_EQ(plan->openmp, "libgomp");
  EXPECT_THAT(
      plan->defaults,
      ElementsAre(Pair("MALLOC_MMAP_MAX_", "0"),
                  Pair("HVDLITE_COORDINATOR_CORE", "none"),
                  Pair("OMP_NUM_THREADS", "2"), Pair("OMP_PLACES", "{0},{1}"),
                  Pair("OPENBLAS_CORETYPE", "Haswell")));
}

TEST(LaunchPlanTest, OneRankThatSharesItsCoresIsOversubscribed) {
  const auto plan = ParseLaunchPlan(Answer(
      R"({"names": ["a"], "planned": true, "ranks": [
           {"threads": 1, "oversubscribed": false, "environment": []},
           {"threads": 64, "oversubscribed": true, "environment": []}]},
         {"names": ["b"], "planned": true, "ranks": [
           {"threads": 2, "oversubscribed": false, "environment": []}]})",
      ""));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->threads, 64);
  EXPECT_TRUE(plan->oversubscribed);
}

TEST(LaunchPlanTest, NumberOfNodesIsKnownIfNodesMakeTheirOwnPlans) {
  const auto plan =
      ParseLaunchPlan(Answer(R"({"names": ["a", "b"], "planned": false})", ""));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->hosts, 2);
  EXPECT_EQ(plan->threads, 0);
}

TEST(LaunchPlanTest, UnreadableAnswerIsIgnored) {
  for (const char* text : {"", "ranks: 2 on 1 host (this host)\n",
                           "{\"format\":1,\"ranks\":", "{\"format\":1,\"a\":2}",
                           "{\"format\":2,\"hosts\":[]}"}) {
    EXPECT_FALSE(ParseLaunchPlan(text).has_value()) << text;
  }
}

TEST(LaunchPlanTest, QuestionIsTheCommandOfTheRun) {
  const Command question = DryRunOf(
      {.arguments = {"hvdliterun", "-np", "2", "p"}, .environment = {{"A", "b"}}});
  EXPECT_THAT(question.arguments, ElementsAre("hvdliterun", "--dry-run=json",
                                          "--oversubscribe", "-np", "2", "p"));
  EXPECT_THAT(question.environment, ElementsAre(Pair("A", "b")));
}

TEST(LauncherDefaultTest, VariablesThatBelongTogetherAreOneDefault) {
  const LaunchPlan plan = {.openmp = "libgomp",
                           .defaults = {{"I_MPI_PIN", "0"},
                                        {"MALLOC_MMAP_MAX_", "0"},
                                        {"MALLOC_TRIM_THRESHOLD_", "-1"},
                                        {"HVDLITE_COORDINATOR_CORE", "none"},
                                        {"OMP_NUM_THREADS", "2"},
                                        {"OPENBLAS_CORETYPE", "Haswell"}}};
  const auto defaults = LauncherDefaults(plan);
  ASSERT_EQ(defaults.size(), 3u);
  EXPECT_EQ(Describe(defaults[0]),
            "OpenBLAS kernels (OPENBLAS_CORETYPE=Haswell)");
  EXPECT_EQ(Describe(defaults[1]),
            "malloc (MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1)");
  EXPECT_EQ(Describe(defaults[2]), "threads (OMP_NUM_THREADS=2)");
  // The other defaults stay, although the launcher starts env, not the program.
  EXPECT_EQ(AblationOf(plan, defaults[1]),
            (Ablation{.unset = {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"},
                      .launcher_flags = {"--openmp", "libgomp", "--set",
                                         "OPENBLAS_CORETYPE=Haswell"}}));
  EXPECT_EQ(AblationOf(plan, defaults[0]),
            (Ablation{.unset = {"OPENBLAS_CORETYPE"},
                      .launcher_flags = {"--openmp", "libgomp"}}));
}

TEST(ThreadCountTest, SettingsHavePriorityOverVariables) {
  const auto environment = base::FakeEnvironment({{"OMP_NUM_THREADS", "3,2"}});
  Configuration configuration;
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 3);
  configuration.environment = {{"OMP_NUM_THREADS", "5"}};
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 5);
  configuration.threads = 7;
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 7);

  EXPECT_EQ(ThreadsBySettings({}, base::FakeEnvironment({})), 0);
}

TEST(ThreadCountTest, RequestedRanksAndThreadsNeedCores) {
  const Processors node = {.cores = 3, .cpus = 6};
  EXPECT_FALSE(IsOversubscribed(3, /*threads=*/0, /*asked=*/0, {}, node));
  EXPECT_TRUE(IsOversubscribed(4, 0, 0, {}, node));
  EXPECT_TRUE(IsOversubscribed(4, 1, 0, {}, node));
  EXPECT_TRUE(IsOversubscribed(2, 2, /*asked=*/2, {}, node));
  EXPECT_FALSE(IsOversubscribed(1, 3, /*asked=*/3, {}, node));
}

TEST(ThreadCountTest, DefaultThreadsMayUseHardwareThreads) {
  const Processors node = {.cores = 2, .cpus = 4};
  EXPECT_FALSE(IsOversubscribed(1, /*threads=*/4, /*asked=*/0, {}, node));
  EXPECT_FALSE(IsOversubscribed(1, 4, /*asked=*/1, {}, node));
  EXPECT_TRUE(IsOversubscribed(1, 4, /*asked=*/4, {}, node));
  EXPECT_TRUE(IsOversubscribed(1, 5, /*asked=*/0, {}, node));
}

TEST(ThreadCountTest, PlanDecidesIfTheLauncherChoosesThreads) {
  const Processors node = {.cores = 2, .cpus = 2};
  LaunchPlan plan = {.threads = 4, .openmp = "", .defaults = {}};
  EXPECT_FALSE(IsOversubscribed(1, /*threads=*/4, /*asked=*/0, plan, node));
  // The user or the program has chosen these.
  EXPECT_TRUE(IsOversubscribed(1, 4, /*asked=*/4, plan, node));
  EXPECT_TRUE(IsOversubscribed(1, 3, /*asked=*/0, plan, node));
  plan.oversubscribed = true;
  EXPECT_TRUE(IsOversubscribed(1, 1, /*asked=*/0, plan, node));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
