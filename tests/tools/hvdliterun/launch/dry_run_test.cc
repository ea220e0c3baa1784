// Jobs on machines and in batch systems that are not here.
#include "tools/hvdliterun/launch/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/testing/golden.h"
#include "tests/tools/hvdliterun/launch/dry_runs.h"
#include "tests/tools/hvdliterun/plan/machines.h"
#include "tools/hvdliterun/launch/about.h"

namespace hvdlite::launch {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::Not;

std::string On(const char* topology, const std::string& line) {
  return absl::StrCat("--topology '", topology, "' ", line);
}

TEST(DryRunTest, A64fxNumaUnderSlurm) {
  testing::ExpectGolden(
      TextOf(On(kA64fx,
                "--preset a64fx-numa train_resnet50 --data-dir 'my "
                "data'"),
             {.variables = kSlurm}));
}

TEST(DryRunTest, PresetsOfOtherBatchSystemsAndLaunchers) {
  Plans(On(kA64fx, "-np 2 --preset a64fx-node train_resnet50"),
        {.variables = {{"PJM_JOBID", "9"},
                       {"PJM_NODE", "2"},
                       {"PJM_PROC_BY_NODE", "1"}},
         .libraries = {{.name = "libfjomp.so", .path = "/opt/libfjomp.so"},
                       {.name = "libmpg.so.1", .path = "/opt/libmpg.so.1"}}});
  Plans(On(kDualXeon6248,
           "--preset xeon-socket --timeline trace.json train_transformer"),
        {.variables = {{"SLURM_JOB_ID", "7"},
                       {"SLURM_JOB_NODELIST", "n[1-2]"},
                       {"SLURM_NTASKS", "3"},
                       {"SLURM_TASKS_PER_NODE", "2,1"},
                       {"OMP_PROC_BIND", "spread"}},
         .versions = {{"mpiexec", "HYDRA build details:"},
                      {"srun", "slurm 23.02"}}});
  const json sge = Plans(
      On(kC48xlarge, "--map socket --mem bind --set 'A=b c' train_resnet50"),
      {.variables = {{"PE_HOSTFILE", "/pe"}},
       .files = {{"/pe", "n1 4 all.q@n1 UNDEFINED\n"}},
       .versions = {{"mpirun", "HYDRA build details:"}}});
  EXPECT_EQ(sge["hosts"][0]["ranks"][2]["memory_nodes"], json({1}));
  Plans(On(kC48xlarge,
           "-np 2 --preset interleave --comm-core none train_resnet50"),
        {.variables = {{"PBS_NODEFILE", "/pbs"}},
         .files = {{"/pbs", "ip-1\nip-2\n"}}});
}

TEST(DryRunTest, NamedHostsInABatchJobAreStartedByItsLauncher) {
  const Place slurm = {.variables = kSlurm,
                       .files = {{"hosts", "n01\nn02\n"}},
                       .versions = {{"srun", "slurm 23.02"}}};
  for (const char* line : {"-H n01:1,n02:1 prog", "--hostfile hosts prog"}) {
    EXPECT_EQ(Plans(line, slurm)["command"][0], "srun");
  }
  EXPECT_THAT(
      Plans("-H a,b prog", {.variables = {{"PJM_JOBID", "9"}}})["command"],
      Contains("--bound-by-launcher"));
}

TEST(DryRunTest, TheUsersSettingsWinAndThatIsSaid) {
  const json plan =
      Plans("-np 2 prog", {.variables = {{"OMP_NUM_THREADS", "1"},
                                         {"MALLOC_TRIM_THRESHOLD_", "5"},
                                         {"KMP_BLOCKTIME", "0"},
                                         {"HVDLITE_COORDINATOR_CORE", "3"}}});
  EXPECT_EQ(ValueIn(plan["environment"], "MALLOC_TRIM_THRESHOLD_"), "5");
  EXPECT_EQ(plan["hosts"][0]["ranks"][1]["threads"], 1);
}

TEST(DryRunTest, ThreadsOfTheEnvironmentAreKeptAsTheyAre) {
  const auto threads = [](const char* line) {
    const json plan = Plans(line, {.variables = {{"OMP_NUM_THREADS", "1,1"}}});
    return ValueIn(plan["hosts"][0]["ranks"][0]["environment"],
                   "OMP_NUM_THREADS");
  };
  EXPECT_EQ(threads("-np 1 prog"), "1,1");
  EXPECT_EQ(threads("-np 1 --threads 2 prog"), "2");
}

TEST(DryRunTest, PublishedMappingsOfTheA64fxGiveEachRankItsCores) {
  const json numa = Plans(On(kA64fx,
                             "-np 8 -H a:4,b:4 --map-by ppr:1:numa:pe=12 --set "
                             "XOS_MMM_L_PAGING_POLICY=demand:demand prog"));
  for (int rank = 0; rank < 4; ++rank) {
    const json& plan = numa["hosts"][0]["ranks"][rank];
    EXPECT_EQ(plan["cpus"].front(), 12 * rank);
    EXPECT_EQ(plan["cpus"].back(), 12 * rank + 11);
    EXPECT_EQ(plan["threads"], 12);
    EXPECT_TRUE(plan["coordinator_cpu"].is_null());
  }
  Plans(On(kA64fx,
           "-np 2 -H a:1,b:1 --map-by ppr:1:node:pe=48 --set "
           "XOS_MMM_L_HPAGE_TYPE=none prog"));
}

TEST(DryRunTest, AMappingThatTheHostsSlotsDoNotFitIsRefused) {
  const std::string by = "--map-by ppr:1:numa:pe=12 prog";
  Refuses(On(kA64fx, "-H a,b " + by));
  Refuses(On(kA64fx, "-H a:5 " + by));
  Plans(On(kA64fx, "-np 2 -H a:4 " + by));  // fewer, and they were asked for
  Refuses(On(kA64fx, "-np 2 -H a:8 --map-by ppr:2:numa prog"));
}

TEST(DryRunTest, AWorldOfOneComputesWithAllCores) {
  const auto threads = [](const std::string& line) -> json {
    return Plans(On("core:16 pu:1", line))["hosts"][0]["ranks"][0]["threads"];
  };
  EXPECT_EQ(threads("-np 1 prog"), 16);
  EXPECT_EQ(threads("-np 1 --comm-core auto prog"), 16);
  EXPECT_EQ(threads("-np 1 --comm-core 15 prog"), 15);
  EXPECT_EQ(threads("-H a:1,b:1 prog"), 15) << "one on each host";
}

TEST(DryRunTest, KnobsOfHvdliteAreFlagsAndAreChecked) {
  const json plan =
      Plans("-np 1 --fusion-threshold-bytes 32M --deterministic=1 prog",
            {.variables = {{"HVDLITE_FUSION_THRESHOLD_BYTES", "1M"}}});
  EXPECT_THAT(plan["command"], Contains("HVDLITE_FUSION_THRESHOLD_BYTES=32M"));
  EXPECT_THAT(plan["command"], Contains("HVDLITE_DETERMINISTIC=1"));
  Refuses("-np 1 --tree-arity 0 prog");
  Plans("-np 1 --set HVDLITE_TIMELIN=x prog");  // mistyped
}

TEST(DryRunTest, VirtualNodesHaveToAddUpToTheJobsRanks) {
  Refuses("-np 3 --virtual-nodes 2,two prog");
  Refuses("-np 3 --virtual-nodes 2,2 prog");
  Plans("-np 3 --virtual-nodes 2,1 prog");
  // Each rank is a world of its own.
  Plans("-np 3 --virtual-nodes 1 --backend single prog");
}

TEST(DryRunTest, TheTableOfAlgorithmsIsReadWhereRank0Runs) {
  const Place place = {.variables = {{"HVDLITE_ALLREDUCE_TABLE", "t.txt"}},
                       .files = {{"t.txt", "1 2-\n"}}};
  Refuses("-np 2 prog", place);
  Refuses("-np 2 --allreduce-table gone.txt prog");
  Plans("-H elsewhere:2 prog", place);
  Plans("-H elsewhere:1,login1:1 prog", place);
}

TEST(DryRunTest, OversubscriptionIsRefusedOrMarked) {
  Refuses("-np 5 prog");
  const json plan = Plans("-np 5 --oversubscribe prog");
  EXPECT_EQ(plan["hosts"][0]["ranks"][4]["oversubscribed"], true);
  EXPECT_THAT(plan["command"], Contains("--oversubscribe"));
}

TEST(DryRunTest, HostsElsewhereMayHaveMoreCoresThanThisOne) {
  EXPECT_EQ(Plans("-H n01:5,n02:5 prog")["hosts"],
            json::parse(R"([{"names": ["n01", "n02"], "ranks_each": 5,
                             "planned": false}])"));
  for (const char* here : {"login1", "login1.cluster", "localhost"}) {
    Refuses(absl::StrCat("-H n01:5,", here, ":5 prog"));
  }
  Refuses(On("core:4 pu:1", "-H n01:5 prog"));
}

TEST(DryRunTest, AnInheritedMemoryPolicyIsKeptUnlessMemSaysOtherwise) {
  const auto memory = [](const char* line) {
    return Plans(line, {.memory_policy =
                            "interleave"})["hosts"][0]["ranks"][0]["memory"];
  };
  EXPECT_EQ(memory("-np 1 prog"), "inherit");
  EXPECT_EQ(memory("-np 1 --mem local prog"), "local");
}

TEST(DryRunTest, ScriptsAndOpenBlasAreNoted) {
  EXPECT_EQ(Plans("-np 1 script")["openmp"], "unknown");
  EXPECT_EQ(
      Plans("-np 1 --openmp libgomp --preset xeon-socket script")["openmp"],
      "libgomp");
  const json plan = Plans(
      "-np 1 prog",
      {.libraries = {{.name = "libblas.so.3", .path = "/lib/libblas.so.3"}}});
  EXPECT_THAT(plan["command"], Contains("/lib/libblas.so.3"));
  EXPECT_EQ(plan["openblas_core_here"], "Haswell");
}

TEST(DryRunTest, AProgramThatIsNotHereIsAnErrorUnlessItRunsElsewhere) {
  Place place = {.variables = {{"PATH", "/missing:/also-missing"}},
                 .files = {{"./missing.py", ""}},
                 .dry_run = false};
  for (const char* line :
       {"-np 1 prog", "-np 1 ./missing", "-np 1 ./missing.py"}) {
    Refuses(line, place, absl::StatusCode::kNotFound);
  }
  Plans("-H n1:1 ./missing", place);
  place.dry_run = true;
  Plans("-np 1 ./missing", place);
}

TEST(DryRunTest, TheAllocatorMustBeThere) {
  Refuses("-np 1 --alloc jemalloc prog", {}, absl::StatusCode::kNotFound);
  Refuses("-np 1 --alloc tcmalloc prog", {}, absl::StatusCode::kNotFound);
  EXPECT_EQ(ValueIn(Plans("-np 1 --alloc jemalloc prog",
                          {.files = {{"/usr/lib64/libjemalloc.so.2",
                                      ""}}})["environment"],
                    "LD_PRELOAD"),
            "/usr/lib64/libjemalloc.so.2");
}

TEST(DryRunTest, RanksComeFromTheLineOrTheAllocation) {
  Refuses("prog");
  Refuses("-np 3 -H a:1,b:1 prog");
  const Place pbs = {.variables = {{"PBS_NODEFILE", "/pbs"}},
                     .files = {{"/pbs", "n1\nn2\n"}}};
  EXPECT_EQ(Plans("prog", pbs)["ranks"], 2);
  EXPECT_EQ(Plans("-np 4 prog", pbs)["hosts"][0]["ranks_each"], 2);
}

TEST(DryRunTest, AStepOfSlurmIsShared) {
  const auto launcher = [](const Pairs& more) {
    Place place = {.variables = kSlurm};
    place.variables.insert(place.variables.end(), more.begin(), more.end());
    return Plans("prog", place)["launcher_environment"];
  };
  EXPECT_EQ(launcher({{"SLURM_STEP_ID", "0"}}), json({{"SLURM_OVERLAP", "1"}}));
  EXPECT_EQ(launcher({}), json::object());
  EXPECT_EQ(launcher({{"SLURM_STEP_ID", "0"}, {"SLURM_OVERLAP", "1"}}),
            json::object());
}

TEST(DryRunJsonTest, SaysAllThatTheTextSays) {
  const absl::StatusOr<Job> job =
      JobOf(On("pack:2 [numa] core:2 pu:1",
               "--comm-core 1 --mem bind --set 'A=b c' prog 'its argument'"),
            {.variables = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_JOB_NODELIST", "n[1-3]"},
                           {"SLURM_NTASKS", "4"},
                           {"SLURM_TASKS_PER_NODE", "2,1(x2)"},
                           {"SLURM_STEP_ID", "0"},
                           {"OMP_PROC_BIND", "spread"}}});
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string text = DryRunJson(*job);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "more than a line";
  testing::ExpectGolden(text);
  testing::ExpectGolden(RenderDryRun(*job));
}

TEST(DryRunJsonTest, WhatIsNoTextIsReplaced) {
  const auto job = JobOf("-np 1 --set A=\xff prog", {});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(json::parse(DryRunJson(*job))["environment"][0]["value"],
            "\xef\xbf\xbd");
}

TEST(ShellCommandTest, WordsStayWords) {
  EXPECT_EQ(ShellCommand({"a", "b c", "", "it's", "x=1"}),
            "a 'b c' '' 'it'\\''s' x=1");
}

// Without the lines that differ from build to build.
std::string OfThisMachine(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    for (const char* const fact :
         {"hvdliterun ", "hvdlite: ", "compiler: ", "UCX: ", "kernels: "}) {
      if (absl::StartsWith(line, fact)) line = absl::StrCat(fact, "...");
    }
  }
  return absl::StrJoin(lines, "\n");
}

TEST(AboutTest, VersionAndBuildAreToldFactByFact) {
  const Surroundings here = SurroundingsOf({});
  EXPECT_THAT(
      DescribeVersion({}, here),
      ::testing::ContainsRegex("^hvdliterun [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  for (const Surroundings& around :
       {here, SurroundingsOf({.versions = {}}),
        SurroundingsOf(
            {.versions = {{"mpirun", "mpirun (Open MPI) 5.0.7"}}})}) {
    testing::ExpectGolden(OfThisMachine(DescribeVersion({}, around)));
    testing::ExpectGolden(OfThisMachine(DescribeBuild({}, around)));
  }
}

}  // namespace
}  // namespace hvdlite::launch
