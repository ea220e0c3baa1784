#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "support/process.h"
#include "support/processor.h"
#include "tests/testing/fakes/machine_files.h"
#include "tools/hvdliterun/rank/binding.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr pid_t kProgram = 100;

RankPlan PlanOn(std::vector<int> cpus) {
  RankPlan plan;
  plan.cpus = std::move(cpus);
  return plan;
}

std::string Difference(const std::vector<ThreadCpus>& threads, bool free) {
  return DifferenceFromPlan(threads, PlanOn({2, 3}), kProgram, free);
}

TEST(DifferenceTest, ThreadsInsideThePlanAreAsTheyShouldBe) {
  EXPECT_EQ(Difference({{kProgram, 100, {2, 3}}, {kProgram, 101, {3}}}, false),
            "");
  EXPECT_EQ(Difference({{kProgram, 100, {2}}}, false), "")
      << "an OpenMP runtime pins the first thread to its place";
  EXPECT_EQ(Difference({}, true), "") << "it has ended";
}

TEST(DifferenceTest, AThreadBesideTheRanksCpusIsNamed) {
  EXPECT_EQ(
      Difference({{kProgram, 100, {2, 3}}, {200, 201, {0, 1, 2, 3}}}, false),
      "thread 201 of process 200 runs on the CPUs 0-3 instead of 2-3");
}

TEST(DifferenceTest, ThreadsThatNobodyPinsHaveAllCpus) {
  EXPECT_THAT(Difference({{kProgram, 100, {2}}, {kProgram, 101, {2}}}, true),
              HasSubstr("on the CPUs 2 alone, and not on all of 2-3"));
  EXPECT_EQ(Difference({{kProgram, 100, {2}}, {kProgram, 101, {3}}}, true), "");
  EXPECT_EQ(Difference({{kProgram, 100, {2, 3}}, {200, 200, {2}}}, true), "")
      << "a child's own business";
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Variables Of(Pairs user) {
  return Variables(base::FakeEnvironment(std::move(user)));
}

TEST(ThreadsAreFreeTest, UnlessTheOpenMpRuntimePinsThem) {
  EXPECT_TRUE(ThreadsAreFree(Of({{"OMP_PROC_BIND", "FALSE"}})));
  EXPECT_FALSE(ThreadsAreFree(Of({{"OMP_PROC_BIND", "close"}})));
  EXPECT_FALSE(ThreadsAreFree(Of({})));
  EXPECT_FALSE(ThreadsAreFree(
      Of({{"OMP_PROC_BIND", "false"}, {"KMP_AFFINITY", "compact"}})));
}

std::string HowToStop(const Pairs& variables, const std::string& own = "") {
  return HowToStopBinding(Of(variables), PlanOn({2, 3}), own);
}

TEST(HowToStopBindingTest, NamesTheVariableThatTurnsItOff) {
  EXPECT_THAT(HowToStop({{"MV2_ENABLE_AFFINITY", "1"}}),
              HasSubstr("set MV2_ENABLE_AFFINITY=0"));
  EXPECT_THAT(
      HowToStop({{"MV2_ENABLE_AFFINITY", "0"}, {"GOMP_CPU_AFFINITY", "0-1"}},
                "GOMP_CPU_AFFINITY"),
      HasSubstr("unset GOMP_CPU_AFFINITY"));
  EXPECT_THAT(HowToStop({{"HVDLITE_COORDINATOR_CORE", "1"}}),
              HasSubstr("HVDLITE_COORDINATOR_CORE=1 binds"));
}

TEST(HowToStopBindingTest, WhatBindsNothingIsNotNamed) {
  for (const char* off : {"0", "off", "No", "disable"}) {
    EXPECT_THAT(
        HowToStop({{"MV2_ENABLE_AFFINITY", off},
                   {"I_MPI_PIN", off},
                   {"HVDLITE_COORDINATOR_CORE", "2"}}),
        HasSubstr("OMPI_MCA_hwloc_base_binding_policy=none (Open MPI)"));
  }
  EXPECT_THAT(HowToStop({{"KMP_AFFINITY", "disabled"}}, "KMP_AFFINITY"),
              HasSubstr("something else"));
  EXPECT_THAT(HowToStop({{"HVDLITE_COORDINATOR_CORE", "none"}}),
              HasSubstr("something else"));
}

// What a watch reports when looks number `first_difference` to
// `last_difference` differ.
struct Watched {
  std::vector<absl::Duration> pauses;
  std::vector<absl::Duration> reports;
  int looks = 0;
};

Watched Watch(int first_difference, int pauses_until_the_end,
              int last_difference = 99) {
  Watched watched;
  WatchBinding(
      {.pause =
           [&](absl::Duration pause) {
             watched.pauses.push_back(pause);
             return static_cast<int>(watched.pauses.size()) <=
                    pauses_until_the_end;
           },
       .look = [&]() -> std::string {
         ++watched.looks;
         const bool differs = watched.looks >= first_difference &&
                              watched.looks <= last_difference;
         return differs ? "elsewhere" : "";
       },
       .report =
           [&](absl::Duration since_start, const std::string& difference) {
             EXPECT_EQ(difference, "elsewhere");
             watched.reports.push_back(since_start);
           }});
  return watched;
}

TEST(WatchTest, LooksFourTimesAndReportsTheFirstDifference) {
  const Watched quiet = Watch(9, 9);
  EXPECT_THAT(quiet.pauses, ElementsAre(absl::ZeroDuration(), absl::Seconds(2),
                                        absl::Seconds(8), absl::Seconds(50)));
  EXPECT_EQ(quiet.looks, 4);
  EXPECT_THAT(quiet.reports, IsEmpty());
  EXPECT_THAT(Watch(1, 9).reports, ElementsAre(absl::Seconds(1)));
  EXPECT_THAT(Watch(3, 9).reports, ElementsAre(absl::Seconds(11)));
}

TEST(WatchTest, WhatIsOverASecondLaterIsNotReported) {
  const Watched passing = Watch(2, 9, /*last_difference=*/2);
  EXPECT_THAT(passing.pauses, ElementsAre(absl::ZeroDuration(),
                                          absl::Seconds(2), absl::Seconds(1),
                                          absl::Seconds(7), absl::Seconds(50)));
  EXPECT_THAT(passing.reports, IsEmpty());
}

TEST(WatchTest, EndsWithTheRank) {
  EXPECT_EQ(Watch(1, 0).looks, 0);
  EXPECT_EQ(Watch(9, 1).looks, 1);
}

TEST(ThreadsOfGroupTest, FindsItsProcessesAsTheKernelHasThem) {
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

// A made-up process of group 7 with a thread that may use the CPUs 0-1.
void AddProcess(testing::MachineFiles& tree, const std::string& id,
                const std::string& state) {
  tree.Write("/proc/" + id + "/stat", id + " (a) b) " + state + " 1 7 7 0");
  tree.Write("/proc/" + id + "/task/" + id + "/status",
             "Name:\ta\nState:\t" + state + " (some)\nCpus_allowed_list:\t0-1");
}

TEST(ThreadsOfGroupTest, ProcessesThatEndMeanwhileAreLeftOut) {
  testing::MachineFiles tree;
  AddProcess(tree, "7", "S");
  AddProcess(tree, "8", "Z");
  AddProcess(tree, "9", "S");  // another thread of it has ended
  tree.Write("/proc/9/task/10/comm", "a");
  AddProcess(tree, "11", "S");  // and of this one, since it was opened
  tree.Write("/proc/11/task/12/status/is a folder", "");
  tree.Write("/proc/13/stat/is a folder", "");
  const std::vector<ThreadCpus> threads = ThreadsOfGroup(7, tree.files());
  ASSERT_THAT(threads, SizeIs(1));
  EXPECT_EQ(threads[0].process, 7);
  EXPECT_EQ(threads[0].thread, 7);
  EXPECT_THAT(threads[0].cpus, ElementsAre(0, 1));
}

}  // namespace
}  // namespace hvdlite::launch
