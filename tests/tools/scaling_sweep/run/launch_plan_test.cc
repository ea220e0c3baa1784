#include "tools/scaling_sweep/run/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/support/machine.h"

namespace hvdlite::scaling_sweep {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr char kHead[] =
    R"(ranks: 2 on 1 host (this host)
every host is taken to be like this machine: 1 package, 1 NUMA node, 4 cores
OpenMP: libgomp

command:
  mpirun -np 2 hvdliterun --exec-rank --env A=1 default -- prog

environment of every rank:
  BLAS=fast                                          --set
  MALLOC_MMAP_MAX_=0                                 default
  TCMALLOC_RELEASE_RATE=0                            --alloc tcmalloc

)";
constexpr char kHost[] =
    R"(localhost: 2 ranks
  local rank 0: CPUs 0-1, 2 threads, coordinator none, memory local
  local rank 1: CPUs 2-3, 2 threads, coordinator none, memory local
  package 0, NUMA node 0: 0 0 1 1
 environment of local rank 0:
  HVDLITE_COORDINATOR_CORE=none                      cores of the rank
  OMP_NUM_THREADS=2                                  cores of the rank
  OMP_PLACES={0},{1}                                 cores of the rank
 environment of local rank 1:
  HVDLITE_COORDINATOR_CORE=none                      cores of the rank
  OMP_NUM_THREADS=2                                  cores of the rank
  OMP_PLACES={2},{3}                                 cores of the rank
)";

TEST(LaunchPlanTest, SaysThreadsAndWhatTheLauncherSetsByItself) {
  const auto plan = ParseLaunchPlan(absl::StrCat(
      kHead, kHost,
      "\nnotes:\n- each node sets OPENBLAS_CORETYPE if OpenBLAS would take the "
      "kernels of an old processor; here: Haswell\n"));
  ASSERT_TRUE(plan.ok()) << plan.status();
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

TEST(LaunchPlanTest, OneRankThatSharesItsCoresOversubscribes) {
  const auto plan = ParseLaunchPlan(
      "  local rank 0: CPUs 0, 1 thread, coordinator none, memory local\n"
      "  local rank 1: CPUs 0, 64 threads, coordinator CPU 1, memory bind 0, "
      "OVERSUBSCRIBED\n");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->threads, 64);
  EXPECT_TRUE(plan->oversubscribed);
}

TEST(LaunchPlanTest, WhereNodesPlanForThemselvesNothingIsKnown) {
  EXPECT_FALSE(ParseLaunchPlan(absl::StrCat(kHead,
                                            "a b: 64 ranks each\n  planned by "
                                            "the nodes themselves\n"))
                   .ok());
}

TEST(LaunchPlanTest, SaysOnHowManyHostsTheRanksAre) {
  EXPECT_EQ(PlannedHosts(kHead), 1);
  EXPECT_EQ(PlannedHosts("note\nranks: 64 on 16 hosts (SLURM job 1)\n"), 16);
  EXPECT_EQ(PlannedHosts(kHost), 0);
  EXPECT_EQ(PlannedHosts("ranks: 2 on many hosts (?)\nranks: 2\n"), 0);
}

TEST(LaunchPlanTest, TheQuestionIsTheRunsCommand) {
  const Command question = DryRunOf(
      {.words = {"hvdliterun", "-np", "2", "p"}, .environment = {{"A", "b"}}});
  EXPECT_THAT(question.words, ElementsAre("hvdliterun", "--dry-run",
                                          "--oversubscribe", "-np", "2", "p"));
  EXPECT_THAT(question.environment, ElementsAre(Pair("A", "b")));
}

TEST(LauncherDefaultTest, VariablesThatBelongTogetherAreOne) {
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
  // The others stay, though the launcher sees env, not the program.
  EXPECT_EQ(AblationOf(plan, defaults[1]),
            (Ablation{.unset = {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"},
                      .launcher_flags = {"--openmp", "libgomp", "--set",
                                         "OPENBLAS_CORETYPE=Haswell"}}));
  EXPECT_EQ(AblationOf(plan, defaults[0]),
            (Ablation{.unset = {"OPENBLAS_CORETYPE"},
                      .launcher_flags = {"--openmp", "libgomp"}}));
}

TEST(ThreadCountTest, SettingsComeBeforeVariables) {
  const auto environment = base::FakeEnvironment({{"OMP_NUM_THREADS", "3,2"}});
  Configuration configuration;
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 3);
  configuration.environment = {{"OMP_NUM_THREADS", "5"}};
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 5);
  configuration.threads = 7;
  EXPECT_EQ(ThreadsBySettings(configuration, environment), 7);

  EXPECT_EQ(ThreadsBySettings({}, base::FakeEnvironment({})), 0);
}

TEST(ThreadCountTest, RanksAndThreadsThatWereAskedForNeedCores) {
  const Processors node = {.cores = 3, .cpus = 6};
  EXPECT_FALSE(IsOversubscribed(3, /*threads=*/0, /*asked=*/0, {}, node));
  EXPECT_TRUE(IsOversubscribed(4, 0, 0, {}, node));
  EXPECT_TRUE(IsOversubscribed(4, 1, 0, {}, node));
  EXPECT_TRUE(IsOversubscribed(2, 2, /*asked=*/2, {}, node));
  EXPECT_FALSE(IsOversubscribed(1, 3, /*asked=*/3, {}, node));
}

TEST(ThreadCountTest, ThreadsThatNobodyAskedForMayUseHardwareThreads) {
  const Processors node = {.cores = 2, .cpus = 4};
  EXPECT_FALSE(IsOversubscribed(1, /*threads=*/4, /*asked=*/0, {}, node));
  EXPECT_FALSE(IsOversubscribed(1, 4, /*asked=*/1, {}, node));
  EXPECT_TRUE(IsOversubscribed(1, 4, /*asked=*/4, {}, node));
  EXPECT_TRUE(IsOversubscribed(1, 5, /*asked=*/0, {}, node));
}

TEST(ThreadCountTest, WhereTheLauncherChoosesItsPlanIsTheVerdict) {
  const Processors node = {.cores = 2, .cpus = 2};
  LaunchPlan plan = {.threads = 4, .openmp = "", .defaults = {}};
  EXPECT_FALSE(IsOversubscribed(1, /*threads=*/4, /*asked=*/0, plan, node));
  // These the launcher has been told, or the program has chosen.
  EXPECT_TRUE(IsOversubscribed(1, 4, /*asked=*/4, plan, node));
  EXPECT_TRUE(IsOversubscribed(1, 3, /*asked=*/0, plan, node));
  plan.oversubscribed = true;
  EXPECT_TRUE(IsOversubscribed(1, 1, /*asked=*/0, plan, node));
}

TEST(MachineTest, HardwareThreadsOfACoreAreOneCore) {
  const auto siblings = [](int cpu) {
    return absl::StrCat(cpu % 2, ",", cpu % 2 + 2);
  };
  EXPECT_EQ(CountCores({0, 1, 2, 3}, siblings), 2);
  EXPECT_EQ(CountCores({0, 2}, siblings), 1);
  // Where nobody knows, each counts.
  EXPECT_EQ(CountCores({0, 2}, [](int) { return ""; }), 2);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
