// Golden tests: what --dry-run prints for machines and batch systems that are
// not here. A test that fails writes what it got beside the expected text's
// name in the folder for temporary files.
#include "tools/hvdliterun/launch/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "tests/tools/hvdliterun/launch/dry_runs.h"
#include "tests/tools/hvdliterun/plan/machines.h"
#include "tools/hvdliterun/launch/about.h"

namespace hvdlite::launch {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::json JsonOf(std::vector<std::string> arguments,
                      const Place& place = {}) {
  arguments.insert(arguments.begin(), "--dry-run=json");
  const absl::StatusOr<Job> job = JobOf(arguments, place);
  EXPECT_TRUE(job.ok()) << job.status();
  const std::string text = job.ok() ? DryRunJson(*job) : "{}\n";
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "more than a line";
  return nlohmann::json::parse(text);
}

void ExpectGolden(const std::string& name, const std::string& text) {
  std::ifstream file(std::string(HVDLITE_GOLDEN_FOLDER "/") + name);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str());
  if (text != expected.str()) {
    const std::string path = ::testing::TempDir() + name;
    std::ofstream(path) << text;
    ADD_FAILURE() << "what it is now lies in " << path;
  }
}

TEST(DryRunTest, A64fxNumaUnderSlurm) {
  ExpectGolden("a64fx_numa_slurm.txt",
               TextOf({"--topology", kA64fx, "--preset", "a64fx-numa",
                       "train_resnet50", "--data-dir", "my data"},
                      {.variables = kSlurm}));
}

TEST(DryRunTest, A64fxNodeUnderPjsub) {
  ExpectGolden(
      "a64fx_node_pjsub.txt",
      TextOf({"-np", "2", "--topology", kA64fx, "--preset", "a64fx-node",
              "train_resnet50"},
             {.variables = {{"PJM_JOBID", "9"},
                            {"PJM_NODE", "2"},
                            {"PJM_PROC_BY_NODE", "1"}},
              .libraries = {
                  {.name = "libfjomp.so", .path = "/opt/libfjomp.so"},
                  {.name = "libmpg.so.1", .path = "/opt/libmpg.so.1"}}}));
}

TEST(DryRunTest, DualXeonSocketsWithSrunAndMpich) {
  ExpectGolden("dual_xeon_socket_srun.txt",
               TextOf({"--topology", kDualXeon6248, "--preset", "xeon-socket",
                       "--timeline", "trace.json", "train_transformer"},
                      {.variables = {{"SLURM_JOB_ID", "7"},
                                     {"SLURM_JOB_NODELIST", "n[1-2]"},
                                     {"SLURM_NTASKS", "3"},
                                     {"SLURM_TASKS_PER_NODE", "2,1"},
                                     {"OMP_PROC_BIND", "spread"}},
                       .versions = {{"mpiexec", "HYDRA build details:"},
                                    {"srun", "slurm 23.02"}}}));
}

TEST(DryRunTest, C48xlargeInterleavedUnderPbs) {
  ExpectGolden("c4_8xlarge_interleave_pbs.txt",
               TextOf({"-np", "2", "--topology", kC48xlarge, "--preset",
                       "interleave", "--comm-core", "none", "train_resnet50"},
                      {.variables = {{"PBS_NODEFILE", "/pbs"}},
                       .files = {{"/pbs", "ip-1\nip-2\n"}}}));
}

TEST(DryRunTest, C48xlargeFourRanksUnderSge) {
  ExpectGolden("c4_8xlarge_sge.txt",
               TextOf({"--topology", kC48xlarge, "--map", "socket", "--mem",
                       "bind", "--set", "A=b c", "train_resnet50"},
                      {.variables = {{"PE_HOSTFILE", "/pe"}},
                       .files = {{"/pe", "n1 4 all.q@n1 UNDEFINED\n"}},
                       .versions = {{"mpirun", "HYDRA build details:"}}}));
}

TEST(DryRunTest, NamedHostsInABatchJobAreStartedByItsLauncher) {
  const Place slurm = {.variables = kSlurm,
                       .files = {{"hosts", "n01\nn02\n"}},
                       .versions = {{"srun", "slurm 23.02"}}};
  EXPECT_THAT(TextOf({"-H", "n01:1,n02:1", "prog"}, slurm),
              HasSubstr("  srun --ntasks=2 --nodes=2 --ntasks-per-node=1"));
  EXPECT_THAT(TextOf({"--hostfile", "hosts", "prog"}, slurm),
              HasSubstr("  srun --ntasks=2"));
  EXPECT_THAT(
      TextOf({"-H", "a,b", "prog"}, {.variables = {{"PJM_JOBID", "9"}}}),
      HasSubstr("--bound-by-launcher"));
}

TEST(DryRunTest, TheUsersSettingsWinAndThatIsSaid) {
  const std::string text = TextOf(
      {"-np", "2", "prog"}, {.variables = {{"OMP_NUM_THREADS", "1"},
                                           {"MALLOC_TRIM_THRESHOLD_", "5"},
                                           {"KMP_BLOCKTIME", "0"},
                                           {"HVDLITE_COORDINATOR_CORE", "3"}}});
  EXPECT_THAT(text, HasSubstr("MALLOC_TRIM_THRESHOLD_=5"));
  EXPECT_THAT(text, HasSubstr("MALLOC_TRIM_THRESHOLD_=5 of the environment is "
                              "kept"));
  EXPECT_THAT(text, HasSubstr("--threads 1"));
  EXPECT_THAT(text, HasSubstr("KMP_BLOCKTIME=0 of the environment does "
                              "nothing in libgomp"));
  EXPECT_THAT(text, HasSubstr("HVDLITE_COORDINATOR_CORE=3 is kept"));
}

TEST(DryRunTest, ThreadsOfTheEnvironmentAreKeptAsTheyAre) {
  const Place nested = {.variables = {{"OMP_NUM_THREADS", "1,1"}}};
  const std::string kept = TextOf({"-np", "1", "prog"}, nested);
  EXPECT_THAT(kept, HasSubstr("--threads 1 --comm-core"));
  EXPECT_THAT(kept, ContainsRegex("OMP_NUM_THREADS=1,1 +environment"));
  const std::string given =
      TextOf({"-np", "1", "--threads", "2", "prog"}, nested);
  EXPECT_THAT(given, HasSubstr("--threads 2 --threads-given --comm-core"));
  EXPECT_THAT(given, ContainsRegex("OMP_NUM_THREADS=2 +--threads"));
}

TEST(DryRunTest, PublishedMappingsOfTheA64fxGiveEachRankItsCores) {
  const std::string numa =
      TextOf({"-np", "8", "-H", "a:4,b:4", "--topology", kA64fx, "--map-by",
              "ppr:1:numa:pe=12", "--set",
              "XOS_MMM_L_PAGING_POLICY=demand:demand", "prog"});
  for (const char* rank :
       {"local rank 0: CPUs 0-11, 12 threads, coordinator none",
        "local rank 1: CPUs 12-23, 12 threads, coordinator none",
        "local rank 2: CPUs 24-35, 12 threads, coordinator none",
        "local rank 3: CPUs 36-47, 12 threads, coordinator none"}) {
    EXPECT_THAT(numa, HasSubstr(rank));
  }
  EXPECT_THAT(numa,
              ContainsRegex("XOS_MMM_L_PAGING_POLICY=demand:demand +--set"));
  const std::string node = TextOf(
      {"-np", "2", "-H", "a:1,b:1", "--topology", kA64fx, "--map-by",
       "ppr:1:node:pe=48", "--set", "XOS_MMM_L_HPAGE_TYPE=none", "prog"});
  EXPECT_THAT(node, HasSubstr("CPUs 0-47, 48 threads, coordinator none"));
  EXPECT_THAT(node, ContainsRegex("XOS_MMM_L_HPAGE_TYPE=none +--set"));
}

TEST(DryRunTest, AMappingThatTheHostsSlotsDoNotFitIsRefused) {
  const std::vector<std::string> flags = {"--topology", kA64fx, "--map-by",
                                          "ppr:1:numa:pe=12", "prog"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return arguments;
  };
  EXPECT_THAT(ErrorOf(with({"-H", "a,b"})),
              ::testing::AllOf(HasSubstr("4 ranks, but a gets 1"),
                               HasSubstr("say a:4 with -H")));
  EXPECT_THAT(ErrorOf(with({"-H", "a:5"})), HasSubstr("but a gets 5"));
  TextOf(with({"-np", "2", "-H", "a:4"}));  // fewer, and they were asked for
  EXPECT_THAT(ErrorOf({"-np", "2", "-H", "a:8", "--topology", kA64fx,
                       "--map-by", "ppr:2:numa", "prog"}),
              HasSubstr("8 ranks, but a gets 2"));
}

TEST(DryRunTest, AWorldOfOneComputesWithAllCores) {
  const auto text = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--topology", "core:16 pu:1", "prog"});
    return TextOf(std::move(arguments));
  };
  const std::string whole = "CPUs 0-15, 16 threads, coordinator none";
  EXPECT_THAT(text({"-np", "1"}), HasSubstr(whole));
  EXPECT_THAT(text({"-np", "1", "--comm-core", "auto"}), HasSubstr(whole));
  EXPECT_THAT(text({"-np", "1", "--comm-core", "15"}),
              HasSubstr("CPUs 0-15, 15 threads, coordinator CPU 15"));
  // One on each host is not alone.
  EXPECT_THAT(text({"-H", "a:1,b:1"}),
              HasSubstr("CPUs 0-15, 15 threads, coordinator CPU 15"));
}

TEST(DryRunTest, KnobsOfHvdliteAreFlagsAndAreChecked) {
  const std::string text =
      TextOf({"-np", "1", "--fusion-threshold-bytes", "32M",
              "--deterministic=1", "prog"},
             {.variables = {{"HVDLITE_FUSION_THRESHOLD_BYTES", "1M"}}});
  EXPECT_THAT(text, HasSubstr("--env HVDLITE_FUSION_THRESHOLD_BYTES=32M"));
  EXPECT_THAT(text, HasSubstr("--env HVDLITE_DETERMINISTIC=1"));
  EXPECT_THAT(text, HasSubstr("--fusion-threshold-bytes wins"));
  EXPECT_THAT(ErrorOf({"-np", "1", "--tree-arity", "0", "prog"}),
              ::testing::AllOf(HasSubstr("HVDLITE_TREE_ARITY=0 cannot be used"),
                               HasSubstr("it is set by --tree-arity")));
}

TEST(DryRunTest, VirtualNodesHaveToAddUpToTheJobsRanks) {
  EXPECT_THAT(ErrorOf({"-np", "3", "--virtual-nodes", "2,two", "prog"}),
              HasSubstr("'two' is no number of ranks"));
  EXPECT_THAT(ErrorOf({"-np", "3", "--virtual-nodes", "2,2", "prog"}),
              ::testing::AllOf(HasSubstr("HVDLITE_VIRTUAL_NODES=2,2"),
                               HasSubstr("more ranks than the world has, 3"),
                               HasSubstr("it is set by --virtual-nodes")));
  TextOf({"-np", "3", "--virtual-nodes", "2,1", "prog"});
  // Each rank is a world of its own.
  TextOf({"-np", "3", "--virtual-nodes", "1", "--backend", "single", "prog"});
}

TEST(DryRunTest, TheTableOfAlgorithmsIsReadWhereRank0Runs) {
  const Place place = {.variables = {{"HVDLITE_ALLREDUCE_TABLE", "t.txt"}},
                       .files = {{"t.txt", "1 2-\n"}}};
  EXPECT_THAT(ErrorOf({"-np", "2", "prog"}, place),
              ::testing::AllOf(HasSubstr("HVDLITE_ALLREDUCE_TABLE=t.txt: "),
                               HasSubstr("line 1 '1 2-'")));
  EXPECT_THAT(ErrorOf({"-np", "2", "--allreduce-table", "gone.txt", "prog"}),
              HasSubstr("HVDLITE_ALLREDUCE_TABLE=gone.txt: cannot read"));
  TextOf({"-H", "elsewhere:2", "prog"}, place);
  TextOf({"-H", "elsewhere:1,login1:1", "prog"}, place);
}

TEST(DryRunTest, MistypedVariablesOfHvdliteAreNoticed) {
  EXPECT_THAT(TextOf({"-np", "1", "--set", "HVDLITE_TIMELIN=x", "prog"}),
              HasSubstr("did you mean HVDLITE_TIMELINE?"));
}

TEST(DryRunTest, OversubscriptionIsRefusedOrMarked) {
  EXPECT_THAT(ErrorOf({"-np", "5", "prog"}), HasSubstr("--oversubscribe"));
  const std::string text = TextOf({"-np", "5", "--oversubscribe", "prog"});
  EXPECT_THAT(text, HasSubstr("OVERSUBSCRIBED"));
  EXPECT_THAT(text, HasSubstr("0+1+2+3+4 0+1+2+3+4"));
  EXPECT_THAT(text, HasSubstr("mpirun -np 5 --map-by slot --bind-to none "
                              "--oversubscribe"));
}

TEST(DryRunTest, HostsElsewhereMayHaveMoreCoresThanThisOne) {
  const std::string text = TextOf({"-H", "n01:5,n02:5", "prog"});
  EXPECT_THAT(text, HasSubstr("the nodes plan for themselves"));
  EXPECT_THAT(text, HasSubstr("n01 n02: 5 ranks each\n  planned by the nodes"));
  for (const char* here : {"login1", "login1.cluster", "localhost"}) {
    EXPECT_THAT(ErrorOf({"-H", std::string("n01:5,") + here + ":5", "prog"}),
                HasSubstr("5 ranks on a host with 4 usable cores"));
  }
  EXPECT_THAT(ErrorOf({"-H", "n01:5", "--topology", "core:4 pu:1", "prog"}),
              HasSubstr("5 ranks on a host with 4 usable cores"));
}

TEST(AboutTest, TheVersionNamesTheLauncherThatIsFound) {
  const std::string text = DescribeVersion({}, SurroundingsOf({}));
  EXPECT_THAT(text, ContainsRegex("^hvdliterun [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(text, HasSubstr("\nlauncher: mpirun (openmpi): mpirun (Open MPI) "
                              "4.1.4\n"));
  EXPECT_THAT(DescribeVersion({}, SurroundingsOf({.versions = {}})),
              HasSubstr("\nlauncher: none: there is no mpirun"));
}

TEST(AboutTest, TheBuildIsToldFactByFact) {
  const std::string text = DescribeBuild({}, SurroundingsOf({}));
  for (const char* fact :
       {"hvdlite: ", "\ncompiler: ", "\nUCX: ", "\nkernels: ",
        "\nlauncher: mpirun (openmpi)", "\n--in-place: no: it needs Open MPI 5",
        "\nmachine: 1 package",
        "\nnetwork interfaces: lo, eth0, ib0 (mlx5_0:1)", "\njemalloc: none"}) {
    EXPECT_THAT(text, HasSubstr(fact));
  }
  EXPECT_THAT(
      DescribeBuild({},
                    SurroundingsOf(
                        {.versions = {{"mpirun", "mpirun (Open MPI) 5.0.7"}}})),
      HasSubstr("\n--in-place: yes"));
}

TEST(DryRunTest, AnInheritedMemoryPolicyIsKeptUnlessMemSaysOtherwise) {
  const Place place = {.memory_policy = "interleave"};
  EXPECT_THAT(TextOf({"-np", "1", "prog"}, place), HasSubstr("memory inherit"));
  EXPECT_THAT(TextOf({"-np", "1", "--mem", "local", "prog"}, place),
              HasSubstr("memory local"));
}

TEST(DryRunTest, ScriptsAndOpenBlasAreNoted) {
  EXPECT_THAT(TextOf({"-np", "1", "script"}),
              HasSubstr("script cannot be looked into"));
  const std::string named = TextOf(
      {"-np", "1", "--openmp", "libgomp", "--preset", "xeon-socket", "script"});
  EXPECT_THAT(named, HasSubstr("GOMP_SPINCOUNT=100000"));
  EXPECT_THAT(named, Not(HasSubstr("looked into")));
  const std::string text = TextOf(
      {"-np", "1", "prog"},
      {.libraries = {{.name = "libblas.so.3", .path = "/lib/libblas.so.3"}}});
  EXPECT_THAT(text, HasSubstr("--openblas /lib/libblas.so.3"));
  EXPECT_THAT(text, HasSubstr("here: Haswell"));
}

TEST(DryRunTest, AProgramThatIsNotHereIsAnErrorUnlessItRunsElsewhere) {
  const auto error = [](const std::vector<std::string>& arguments,
                        const Place& place) {
    const auto text = Plan(arguments, place);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
    return std::string(text.status().message());
  };
  const Place place = {.variables = {{"PATH", "/missing:/also-missing"}},
                       .files = {{"./missing.py", ""}}};
  EXPECT_THAT(error({"-np", "1", "prog"}, place),
              HasSubstr("there is no prog in PATH: give its path (./prog)"));
  EXPECT_THAT(error({"-np", "1", "./missing"}, place),
              HasSubstr("there is no ./missing: correct the path"));
  EXPECT_THAT(error({"-np", "1", "./missing.py"}, place),
              HasSubstr("cannot be executed: chmod +x it"));
  const auto elsewhere = Plan({"-H", "n1:1", "./missing"}, place);
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_THAT(*elsewhere, HasSubstr("on this host, there is no ./missing"));
  EXPECT_THAT(TextOf({"-np", "1", "./missing"}, place),
              HasSubstr("on this host, there is no ./missing"));
}

TEST(DryRunTest, TheAllocatorMustBeThere) {
  const auto text = DryRun({"-np", "1", "--alloc", "jemalloc", "prog"});
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(TextOf({"-np", "1", "--alloc", "jemalloc", "prog"},
                     {.files = {{"/usr/lib64/libjemalloc.so.2", ""}}}),
              HasSubstr("--env LD_PRELOAD=/usr/lib64/libjemalloc.so.2"));
}

TEST(DryRunTest, WithoutRanksOrAllocationItAsks) {
  EXPECT_THAT(ErrorOf({"prog"}), HasSubstr("-np N"));
  EXPECT_THAT(ErrorOf({"-np", "3", "-H", "a:1,b:1", "prog"}),
              HasSubstr("do not fit the 2 slots of -H"));
}

TEST(DryRunTest, PbsWithOneLineAHostStartsARankOnEach) {
  const Place pbs = {.variables = {{"PBS_NODEFILE", "/pbs"}},
                     .files = {{"/pbs", "n1\nn2\n"}}};
  const std::string text = TextOf({"prog"}, pbs);
  EXPECT_THAT(text, HasSubstr("mpirun -np 2 --host n1:1,n2:1"));
  EXPECT_THAT(text, HasSubstr("one rank each; for more use -np N"));
  EXPECT_THAT(TextOf({"-np", "4", "prog"}, pbs),
              ::testing::AllOf(HasSubstr("mpirun -np 4 --host n1:2,n2:2"),
                               Not(HasSubstr("one rank each"))));
}

TEST(DryRunTest, AStepOfSlurmIsShared) {
  const auto text = [](const Pairs& more) {
    Place place = {.variables = kSlurm,
                   .versions = {{"mpirun", "mpirun (Open MPI) 4.1.4"}}};
    place.variables.insert(place.variables.end(), more.begin(), more.end());
    return TextOf({"prog"}, place);
  };
  EXPECT_THAT(text({{"SLURM_STEP_ID", "0"}}),
              ::testing::AllOf(HasSubstr("command:\n  SLURM_OVERLAP=1 mpirun"),
                               HasSubstr("in a job step of SLURM")));
  for (const std::string& without :
       {text({}), text({{"SLURM_STEP_ID", "0"}, {"SLURM_OVERLAP", "1"}})}) {
    EXPECT_THAT(without, Not(HasSubstr("SLURM_OVERLAP=1")));
  }
}

TEST(DryRunJsonTest, SaysAllThatTheTextSays) {
  const Place place = {.variables = {{"SLURM_JOB_ID", "7"},
                                     {"SLURM_JOB_NODELIST", "n[1-3]"},
                                     {"SLURM_NTASKS", "4"},
                                     {"SLURM_TASKS_PER_NODE", "2,1(x2)"},
                                     {"SLURM_STEP_ID", "0"},
                                     {"OMP_PROC_BIND", "spread"}}};
  EXPECT_EQ(
      JsonOf({"--topology", "pack:2 [numa] core:2 pu:1", "--comm-core", "1",
              "--mem", "bind", "--set", "A=b c", "prog", "its argument"},
             place),
      nlohmann::json::parse(R"json({
        "format": 1, "ranks": 4, "allocation": "SLURM job 7",
        "machine_from": "--topology",
        "machine": "2 packages, 2 NUMA nodes, 4 cores, 4 hardware threads",
        "openmp": "libgomp",
        "command": [
          "mpirun", "-np", "4", "--host", "n1:2,n2:1,n3:1", "--map-by",
          "slot:OVERSUBSCRIBE", "--bind-to", "none", "-x", "OMP_PROC_BIND",
          "/opt/hvdlite/bin/hvdliterun", "--exec-rank", "--map", "node",
          "--comm-core", "1", "--comm-core-given", "--mem", "bind", "--openmp",
          "libgomp", "--openblas", "libblas.so.3", "--env", "A=b c", "--env",
          "I_MPI_PIN=0", "--env", "MALLOC_MMAP_MAX_=0", "--env",
          "MALLOC_TRIM_THRESHOLD_=-1", "--env", "MV2_ENABLE_AFFINITY=0", "--",
          "prog", "its argument"],
        "launcher_environment": {"SLURM_OVERLAP": "1"},
        "environment": [
          {"name": "A", "value": "b c", "source": "--set"},
          {"name": "I_MPI_PIN", "value": "0", "source": "default"},
          {"name": "MALLOC_MMAP_MAX_", "value": "0", "source": "default"},
          {"name": "MALLOC_TRIM_THRESHOLD_", "value": "-1",
           "source": "default"},
          {"name": "MV2_ENABLE_AFFINITY", "value": "0", "source": "default"}],
        "hosts": [
          {"names": ["n1"], "ranks_each": 2, "planned": true, "ranks": [
            {"local_rank": 0, "cpus": [0, 1], "threads": 1,
             "coordinator_cpu": 1, "memory": "bind", "memory_nodes": [0],
             "oversubscribed": false, "environment": [
               {"name": "HVDLITE_COORDINATOR_CORE", "value": "1",
                "source": "--comm-core"},
               {"name": "OMP_NUM_THREADS", "value": "1",
                "source": "cores of the rank"},
               {"name": "OMP_PLACES", "value": "{0}",
                "source": "cores of the rank"},
               {"name": "OMP_PROC_BIND", "value": "spread",
                "source": "environment"}]},
            {"local_rank": 1, "cpus": [2, 3], "threads": 1,
             "coordinator_cpu": 3, "memory": "bind", "memory_nodes": [1],
             "oversubscribed": false, "environment": [
               {"name": "HVDLITE_COORDINATOR_CORE", "value": "3",
                "source": "--comm-core"},
               {"name": "OMP_NUM_THREADS", "value": "1",
                "source": "cores of the rank"},
               {"name": "OMP_PLACES", "value": "{2}",
                "source": "cores of the rank"},
               {"name": "OMP_PROC_BIND", "value": "spread",
                "source": "environment"}]}]},
          {"names": ["n2", "n3"], "ranks_each": 1, "planned": true, "ranks": [
            {"local_rank": 0, "cpus": [0, 1, 2, 3], "threads": 3,
             "coordinator_cpu": 1, "memory": "bind", "memory_nodes": [0, 1],
             "oversubscribed": false, "environment": [
               {"name": "HVDLITE_COORDINATOR_CORE", "value": "1",
                "source": "--comm-core"},
               {"name": "OMP_NUM_THREADS", "value": "3",
                "source": "cores of the rank"},
               {"name": "OMP_PLACES", "value": "{0},{2},{3}",
                "source": "cores of the rank"},
               {"name": "OMP_PROC_BIND", "value": "spread",
                "source": "environment"}]}]}],
        "openblas_core_here": "",
        "notes": [
          "each node sets OPENBLAS_CORETYPE if OpenBLAS would take the kernels of an old processor",
          "hvdliterun runs in a job step of SLURM (SLURM_STEP_ID is set), whose CPUs the ranks share: the launcher gets SLURM_OVERLAP=1, without which it would wait for the step to end",
          "OMP_PROC_BIND=spread of the environment is kept (default would be close)"]
      })json"));
}

TEST(DryRunJsonTest, NodesThatPlanForThemselvesHaveNoRanks) {
  const nlohmann::json plan =
      JsonOf({"-H", "n01:5,n02:5", "prog"},
             {.libraries = {{.name = "libblas.so.3", .path = "/libblas.so"}}});
  EXPECT_EQ(plan["hosts"], nlohmann::json::parse(R"json([
      {"names": ["n01", "n02"], "ranks_each": 5, "planned": false}])json"));
  EXPECT_EQ(plan["openblas_core_here"], "Haswell");
}

TEST(DryRunJsonTest, WhatIsNoTextIsReplaced) {
  const nlohmann::json plan = JsonOf({"-np", "1", "--set", "A=\xff", "prog"});
  EXPECT_EQ(plan["environment"][0]["value"], "\xef\xbf\xbd");
}

TEST(ShellCommandTest, WordsStayWords) {
  EXPECT_EQ(ShellCommand({"a", "b c", "", "it's", "x=1"}),
            "a 'b c' '' 'it'\\''s' x=1");
}

}  // namespace
}  // namespace hvdlite::launch
