// Jobs on simulated machines, launchers and batch systems. The golden text of
// each describes the resulting job.
#include "tools/hvdliterun/launch/job.h"

#include <gtest/gtest.h>

#include "tests/tools/hvdliterun/launch/dry_runs.h"

namespace hvdlite::launch {
namespace {

std::string On(const char* topology, const std::string& line) {
  return absl::StrCat("--topology '", topology, "' ", line);
}

std::vector<support::Library> Linked(const std::vector<std::string>& names) {
  std::vector<support::Library> libraries;
  for (const std::string& name : names) {
    libraries.push_back({.name = name, .path = "/lib/" + name});
  }
  return libraries;
}

const Place kMpich = {.versions = {{"mpirun", "HYDRA 4.2"}}};
const Place kOpenMpi5 = {
    .versions = {{"mpirun", "mpirun (Open MPI) 5.0.7\n\nReport"}}};
const Place kSrun = {.variables = kSlurm,
                     .versions = {{"srun", "slurm 23.02"}}};
const Place kPbs = {.variables = {{"PBS_NODEFILE", "/pbs"}},
                    .files = {{"/pbs", "ip-1\nip-2\n"}}};
const Place kPjm = {.variables = {{"PJM_JOBID", "9"},
                                  {"PJM_NODE", "2"},
                                  {"PJM_PROC_BY_NODE", "1"}},
                    .libraries = Linked({"libfjomp.so", "libmpg.so.1"})};

Place Also(Place place, const Pairs& variables) {
  place.variables.insert(place.variables.end(), variables.begin(),
                         variables.end());
  return place;
}

TEST(JobTest, PresetsUnderBatchSystemsAndLaunchers) {
  Tells(On(kA64fx, "--preset a64fx-numa train_resnet50"),
        {.variables = kSlurm});
  Tells(On(kA64fx, "-np 2 --preset a64fx-node train_resnet50"), kPjm);
  Tells(On(kDualXeon6248,
           "--preset xeon-socket --timeline trace.json train_transformer"),
        {.variables = {{"SLURM_JOB_ID", "7"},
                       {"SLURM_JOB_NODELIST", "n[1-2]"},
                       {"SLURM_NTASKS", "3"},
                       {"SLURM_TASKS_PER_NODE", "2,1"},
                       {"OMP_PROC_BIND", "spread"}},
         .versions = {{"mpiexec", "HYDRA build details:"},
                      {"srun", "slurm 23.02"}}});
  Tells(On(kC48xlarge, "--map socket --mem bind --set 'A=b c' train_resnet50"),
        {.variables = {{"PE_HOSTFILE", "/pe"}, {"I_MPI_PIN", "1"}},
         .files = {{"/pe", "n1 4 all.q@n1 UNDEFINED\n"}},
         .versions = kMpich.versions});
  Tells(On(kC48xlarge,
           "-np 2 --preset interleave --comm-core none train_resnet50"),
        kPbs);
}

TEST(JobTest, NamedHostsInABatchJobUseItsLauncher) {
  Place slurm = kSrun;
  slurm.files = {{"hosts", "n01\nn02\n"}};
  Tells("-H n01:1,n02:1 prog", slurm);
  Tells("--hostfile hosts prog", slurm);
  Tells("-H a,b prog", {.variables = {{"PJM_JOBID", "9"}}});
}

TEST(JobTest, NumberOfRanksComesFromFlagOrAllocation) {
  Tells("prog");
  Tells("-np 3 -H a:1,b:1 prog");
  Tells("prog", kPbs);
  Tells("-np 4 prog", kPbs);
}

TEST(JobTest, SlurmStepIsSharedWithTheRanks) {
  const Place step = Also({.variables = kSlurm}, {{"SLURM_STEP_ID", "0"}});
  Tells("prog", step);
  Tells("prog", Also(step, {{"SLURM_OVERLAP", "1"}}));
}

TEST(JobTest, PublishedMappingsOfTheA64fxGiveEachRankItsCores) {
  Tells(On(kA64fx,
           "-np 8 -H a:4,b:4 --map-by ppr:1:numa:pe=12 --set "
           "XOS_MMM_L_PAGING_POLICY=demand:demand prog"));
  Tells(On(kA64fx,
           "-np 2 -H a:1,b:1 --map-by ppr:1:node:pe=48 --set "
           "XOS_MMM_L_HPAGE_TYPE=none prog"));
  Tells(On(kA64fx,
           "-np 2 -H a:1,b:1 --map-by ppr:1:node:pe=48 --threads 47 "
           "--comm-core 47 prog"));
  Tells(On(kDualXeon6248, "-np 4 --map-by=ppr:2:socket prog"));
}

TEST(JobTest, MappingThatDoesNotMatchTheSlotsIsRefused) {
  const std::string by = "--map-by ppr:1:numa:pe=12 prog";
  Tells(On(kA64fx, "-H a,b " + by));
  Tells(On(kA64fx, "-H a:5 " + by));
  Tells(On(kA64fx, "-np 2 -H a:4 " + by));  // fewer ranks, as requested by -np
  Tells(On(kA64fx, "-np 2 -H a:8 --map-by ppr:2:numa prog"));
}

TEST(JobTest, SingleRankComputesWithAllCores) {
  for (const char* line : {"-np 1 --comm-core auto prog",
                           "-np 1 --comm-core 15 prog", "-H a:1,b:1 prog"}) {
    Tells(On("core:16 pu:1", line));
  }
}

TEST(JobTest, OversubscriptionIsRefusedOrMarked) {
  Tells("-np 5 prog");
  Tells("-np 5 --oversubscribe prog");
}

TEST(JobTest, OtherHostsMayHaveMoreCoresThanThisHost) {
  Tells("-H n01:5,n02:5 prog");
  for (const char* here : {"login1", "login1.cluster", "localhost"}) {
    Tells(absl::StrCat("-H n01:5,", here, ":5 prog"));
  }
  Tells(On("core:4 pu:1", "-H n01:5 prog"));
}

TEST(JobTest, InheritedMemoryPolicyIsKeptWithoutMemFlag) {
  const Place numactl = {.memory_policy = "interleave"};
  Tells("-np 1 prog", numactl);
  Tells("-np 1 --mem local prog", numactl);
}

TEST(JobTest, UserSettingsTakePrecedenceWithANote) {
  Tells("-np 2 prog", {.variables = {{"OMP_NUM_THREADS", "1"},
                                     {"MALLOC_TRIM_THRESHOLD_", "5"},
                                     {"KMP_BLOCKTIME", "0"},
                                     {"HVDLITE_COORDINATOR_CORE", "3"}}});
  const Place threads = {.variables = {{"OMP_NUM_THREADS", "1,1"},
                                       {"HVDLITE_COORDINATOR_CORE", "none"}}};
  Tells("-np 1 prog", threads);
  Tells("-np 1 --threads 2 --comm-core 2 prog", threads);
  Tells("-np 1 --preset a64fx-node --set XOS_MMM_L_HPAGE_TYPE=none prog",
        {.variables = {{"XOS_MMM_L_HPAGE_TYPE", "thp"}}});
}

TEST(JobTest, KmpIsTranslatedOnlyForLibgomp) {
  const Place user = {
      .variables = {{"KMP_AFFINITY", "granularity=fine,scatter"},
                    {"KMP_BLOCKTIME", "0"},
                    {"OMP_WAIT_POLICY", "active"}}};
  Tells("-np 2 prog", user);
  Tells(On("pack:2 core:2 pu:1", "-np 2 --preset xeon-socket prog"),
        {.libraries = Linked({"libiomp5.so"})});
  Tells("-np 2 prog", {.libraries = Linked({"libgomp.so.1", "libomp.so.5"})});
}

TEST(JobTest, UserPlacementForTheLinkedRuntimeIsKept) {
  for (const char* library : {"libgomp.so.1", "libomp.so.5"}) {
    for (const char* name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
      Tells("-np 1 prog",
            {.variables = {{name, "0-3"}}, .libraries = Linked({library})});
    }
  }
}

TEST(JobTest, LargePagesWithoutTheirLibraryGetANote) {
  Tells("-np 1 prog", {.variables = {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"}}});
  Tells("-np 1 prog", {.variables = {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"},
                                     {"LD_PRELOAD", "/opt/libmpg.so.1"}}});
}

TEST(JobTest, AllocatorMustExistAndIsPreloadedLast) {
  Place place = {.variables = {{"LD_LIBRARY_PATH", "/opt/a:/opt/b"},
                               {"LD_PRELOAD", "mine.so"}}};
  for (const char* line :
       {"-np 1 --alloc jemalloc prog", "-np 1 --alloc tcmalloc prog"}) {
    Tells(line, place);
  }
  place.files = {{"/usr/lib64/libjemalloc.so.2", ""},
                 {"/usr/lib/libtcmalloc.so.4", ""}};
  Tells("-np 1 --alloc jemalloc prog", place);
  place.files["/opt/b/libjemalloc.so.2"] =
      "";  // the user's directories come first
  for (const char* line : {"-np 1 --alloc jemalloc --huge-pages prog",
                           "-np 1 --alloc jemalloc --set LD_PRELOAD=x.so prog",
                           "-np 1 --alloc jemalloc --set LD_PRELOAD= prog",
                           "-np 1 --alloc tcmalloc --huge-pages prog",
                           "-np 1 --huge-pages prog"}) {
    Tells(line, place);
  }
}

TEST(JobTest, SettingsOfHvdliteAreCheckedFlags) {
  Tells("-np 1 --fusion-threshold-bytes 32M --deterministic=1 prog",
        {.variables = {{"HVDLITE_FUSION_THRESHOLD_BYTES", "1M"}}});
  for (const char* line :
       {"-np 1 --tree-arity 0 prog", "-np 1 --set HVDLITE_TIMELIN=x prog",
        "-np 3 --virtual-nodes 2,two prog", "-np 3 --virtual-nodes 2,2 prog",
        "-np 3 --virtual-nodes 2,1 prog",
        // With this backend each rank is its own world.
        "-np 3 --virtual-nodes 1 --backend single prog"}) {
    Tells(line);
  }
}

TEST(JobTest, AlgorithmTableIsReadIfRank0RunsHere) {
  const Place place = {.variables = {{"HVDLITE_ALLREDUCE_TABLE", "t.txt"}},
                       .files = {{"t.txt", "1 2-\n"}}};
  for (const char* line :
       {"-np 2 prog", "-np 2 --allreduce-table gone.txt prog",
        "-H elsewhere:2 prog", "-H elsewhere:1,login1:1 prog"}) {
    Tells(line, place);
  }
}

TEST(JobTest, RuntimeOfAScriptIsUnknownUnlessNamed) {
  Tells("-np 1 script");
  Tells("-np 1 --openmp libgomp script");
  Tells("-np 1 prog", {.libraries = {}});
}

TEST(JobTest, MissingProgramIsAnErrorUnlessItRunsElsewhere) {
  Place place = {.variables = {{"PATH", "/missing:/also-missing"}},
                 .files = {{"./missing.py", ""}},
                 .dry_run = false};
  for (const char* line : {"-np 1 prog", "-np 1 ./missing",
                           "-np 1 ./missing.py", "-H n1:1 ./missing"}) {
    Tells(line, place);
  }
  place.dry_run = true;
  Tells("-np 1 ./missing", place);
}

TEST(JobTest, RootNeedsAFlagOutsideContainers) {
  Place root = {.root = true};
  Tells("-np 1 prog", root);
  Tells("-np 1 --allow-run-as-root prog", root);
  Tells("-np 1 prog", Also(root, {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                  {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}));
  root.files = {{"/.dockerenv", ""}};
  Tells("-np 1 prog", root);
}

TEST(JobTest, InPlaceNeedsOpenMpi5AndMinNp) {
  const std::string line = "-np 4 --in-place --min-np 2 ./train";
  Tells(line);
  Tells(line, kMpich);
  Tells(line, kOpenMpi5);
  Tells("-np 4 --in-place ./train");
}

TEST(JobTest, NetworksAreSetForMpiUcxAndLauncher) {
  const std::string line = "-np 2 --network-interface eth0,ib0 prog";
  Tells(line);
  Tells(line, kMpich);
  Tells("--network-interface eth0 prog", kSrun);
  Tells("-np 1 --launcher pjsub --network-interface eth0 prog");
  // This host does not have the interface; in the second job it has no ranks.
  Tells("-np 2 --network-interface eth7 prog");
  Tells("-H n1:2 --network-interface eth7 prog");
}

TEST(JobTest, SshPortAndKeyNeedALauncherWithSsh) {
  const std::string line =
      "-H n1:2 --ssh-port 2222 --ssh-identity-file /key prog";
  Place place = {.files = {{"/key", ""}}};
  Tells(line, place);
  place.versions = kMpich.versions;
  Tells(line, place);
  Tells(line);
  Tells("-np 1 --ssh-identity-file 'a key' prog", {.files = {{"a key", ""}}});
  Tells("-np 1 --launcher srun --ssh-port 22 prog");
  Tells("--ssh-port 22 prog", {.variables = kSlurm});
}

TEST(JobTest, MissingLauncherIsShownOnlyInADryRun) {
  const std::string line = "-np 1 --launcher mpich prog";
  Tells(line);
  Tells(line, {.dry_run = false});
  Tells("-np 1 prog", {.versions = {}});
  Tells("-np 1 prog", {.versions = {{"mpirun", "LAM 7.1\nmore"}}});
}

}  // namespace
}  // namespace hvdlite::launch
