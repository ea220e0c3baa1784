#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "support/process.h"
#include "support/processor.h"
#include "tests/testing/fakes/machine_files.h"
#include "tools/hvdliterun/rank/binding.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr pid_t kProgram = 100;

RankPlan PlanOn(std::vector<int> cpus) {
  RankPlan plan;
  plan.cpus = std::move(cpus);
  return plan;
}

TEST(DifferenceTest, ThreadsMayUseOnlyTheCpusOfTheRank) {
  struct Case {
    std::vector<ThreadCpus> threads;
    bool free = false;  // no setting pins them
    std::string difference = "";
  };
  const Case cases[] = {
      {{{kProgram, 100, {2, 3}}, {kProgram, 101, {3}}}},
      // An OpenMP runtime pins the first thread to its place.
      {{{kProgram, 100, {2}}}},
      {{{kProgram, 100, {2, 3}}, {200, 201, {0, 1, 2, 3}}},
       false,
       "thread 201 of process 200 runs on the CPUs 0-3 instead of 2-3"},
      {{}, true},  // it has ended
      {{{kProgram, 100, {2}}, {kProgram, 101, {2}}},
       true,
       "the program's threads run only on the CPUs 2, not on all of 2-3"},
      {{{kProgram, 100, {2}}, {kProgram, 101, {3}}}, true},
      // The threads of a child process may run on fewer CPUs.
      {{{kProgram, 100, {2, 3}}, {200, 200, {2}}}, true},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(absl::StrCat("row ", &row - cases));
    const auto& [threads, free, difference] = row;
    EXPECT_EQ(DifferenceFromPlan(threads, PlanOn({2, 3}), kProgram, free),
              difference);
  }
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Variables Of(Pairs user) {
  return Variables(base::FakeEnvironment(std::move(user)));
}

TEST(ThreadsAreFreeTest, FalseIfTheOpenMpRuntimePinsThreads) {
  EXPECT_TRUE(ThreadsAreFree(Of({{"OMP_PROC_BIND", "FALSE"}})));
  EXPECT_FALSE(ThreadsAreFree(Of({{"OMP_PROC_BIND", "close"}})));
  EXPECT_FALSE(ThreadsAreFree(Of({})));
  EXPECT_FALSE(ThreadsAreFree(
      Of({{"OMP_PROC_BIND", "false"}, {"KMP_AFFINITY", "compact"}})));
}

TEST(HowToStopBindingTest, NamesTheVariableThatTurnsBindingOff) {
  struct Case {
    Pairs variables;
    std::string own = "";  // places the OpenMP runtime's threads
    std::string told =
        "something else binds it: MV2_ENABLE_AFFINITY=0 (MVAPICH2), "
        "I_MPI_PIN=0 (Intel MPI), OMPI_MCA_hwloc_base_binding_policy=none "
        "(Open MPI) turn off MPI's own binding; otherwise look for taskset, "
        "numactl and sched_setaffinity in the program and its scripts";
  };
  const Case cases[] = {
      {{{"MV2_ENABLE_AFFINITY", "1"}},
       "",
       "MV2_ENABLE_AFFINITY=1 makes MVAPICH2 bind it: set "
       "MV2_ENABLE_AFFINITY=0"},
      {{{"MV2_ENABLE_AFFINITY", "0"}, {"I_MPI_PIN", "1"}},
       "",
       "I_MPI_PIN=1 makes Intel MPI bind it: set I_MPI_PIN=0"},
      {{{"OMPI_MCA_hwloc_base_binding_policy", "core"}},
       "",
       "OMPI_MCA_hwloc_base_binding_policy=core makes Open MPI bind it: set "
       "OMPI_MCA_hwloc_base_binding_policy=none"},
      {{{"MV2_ENABLE_AFFINITY", "0"}, {"GOMP_CPU_AFFINITY", "0-1"}},
       "GOMP_CPU_AFFINITY",
       "GOMP_CPU_AFFINITY=0-1 makes the OpenMP runtime bind it: unset "
       "GOMP_CPU_AFFINITY"},
      {{{"HVDLITE_COORDINATOR_CORE", "1"}},
       "",
       "HVDLITE_COORDINATOR_CORE=1 binds hvdlite's background thread there: "
       "unset it, and each rank gets its own core for this thread"},
      {{{"HVDLITE_COORDINATOR_CORE", "none"}}},
      {{{"HVDLITE_COORDINATOR_CORE", "2"}, {"I_MPI_PIN", "0"}}},
      {{{"MV2_ENABLE_AFFINITY", "off"}, {"I_MPI_PIN", "No"}}},
      {{{"MV2_ENABLE_AFFINITY", "disable"}}},
      {{{"KMP_AFFINITY", "disabled"}}, "KMP_AFFINITY"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(absl::StrCat("row ", &row - cases));
    EXPECT_EQ(HowToStopBinding(Of(row.variables), PlanOn({2, 3}), row.own),
              row.told);
  }
}

// The seconds at which a watch looks, and at which it reports a difference that
// exists from second `first` to second `last`.
struct Watched {
  std::vector<int> looks;
  std::vector<int> told;
};

Watched Watch(int first, int last) {
  Watched watched;
  BindingWatch watch;
  for (int second = 0; second < 100; ++second) {
    const auto look = [&]() -> std::string {
      watched.looks.push_back(second);
      return second >= first && second <= last ? "elsewhere" : "";
    };
    if (watch.Look(absl::Seconds(second), look) == "elsewhere") {
      watched.told.push_back(second);
    }
  }
  return watched;
}

TEST(WatchTest, LooksFourTimesAndReportsTheFirstLastingDifference) {
  EXPECT_THAT(Watch(100, 100).looks, ElementsAre(0, 2, 10, 60));
  EXPECT_THAT(Watch(100, 100).told, IsEmpty());
  EXPECT_THAT(Watch(0, 99).told, ElementsAre(1));
  EXPECT_THAT(Watch(0, 99).looks, ElementsAre(0, 1));
  EXPECT_THAT(Watch(3, 99).told, ElementsAre(11));
  EXPECT_THAT(Watch(2, 2).told, IsEmpty());
  EXPECT_THAT(Watch(2, 2).looks, ElementsAre(0, 2, 3, 10, 60));
}

TEST(ThreadsOfGroupTest, FindsTheProcessesOfTheKernel) {
  const pid_t leader = support::StartProcess({.command = {"sleep", "infinity"},
                                              .environment = {},
                                              .own_group = true})
                           .value();
  const std::vector<ThreadCpus> threads = ThreadsOfGroup(leader);
  kill(leader, SIGKILL);
  support::WaitForExit(leader);
  ASSERT_THAT(threads, SizeIs(1));
  EXPECT_EQ(threads[0].process, leader);
  EXPECT_EQ(threads[0].thread, leader);
  EXPECT_EQ(threads[0].cpus, support::AllowedCpus());
  EXPECT_THAT(ThreadsOfGroup(leader), IsEmpty());
}

// Adds a fake process of group 7 with a thread that may use the CPUs 0-1.
void AddProcess(testing::MachineFiles& tree, int id, const std::string& state) {
  tree.AddProcess(id, "a) b", 7);
  tree.Write(absl::StrCat("/proc/", id, "/task/", id, "/status"),
             "Name:\ta\nState:\t" + state + " (some)\nCpus_allowed_list:\t0-1");
}

TEST(ThreadsOfGroupTest, EndingProcessesAreLeftOut) {
  testing::MachineFiles tree;
  AddProcess(tree, 7, "S");
  AddProcess(tree, 8, "Z");
  AddProcess(tree, 9, "S");  // another of its threads has ended
  tree.Write("/proc/9/task/10/comm", "a");
  AddProcess(tree, 11,
             "S");  // here a thread ended after the directory was opened
  tree.Write("/proc/11/task/12/status/is a directory", "");
  tree.Write("/proc/13/stat/is a directory", "");
  const std::vector<ThreadCpus> threads = ThreadsOfGroup(7, tree.files());
  ASSERT_THAT(threads, SizeIs(1));
  EXPECT_EQ(threads[0].process, 7);
  EXPECT_EQ(threads[0].thread, 7);
  EXPECT_THAT(threads[0].cpus, ElementsAre(0, 1));
}

}  // namespace
}  // namespace hvdlite::launch
