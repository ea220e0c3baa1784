#include "tools/hvdliterun/plan/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "tools/hvdliterun/plan/slurm_list.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Variables = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Allocation> Detect(
    const Variables& variables,
    const std::map<std::string, std::string>& files = {}) {
  return DetectAllocation(
      base::FakeEnvironment(variables),
      [files](const std::string& path) -> absl::StatusOr<std::string> {
        const auto file = files.find(path);
        if (file == files.end()) return absl::NotFoundError("no " + path);
        return file->second;
      });
}

std::vector<std::string> Expanded(const char* list) {
  const auto hosts = ExpandHostList(list);
  EXPECT_TRUE(hosts.ok()) << hosts.status();
  return hosts.value_or(std::vector<std::string>());
}

TEST(HostListTest, BracketsHoldRangesAndSingleNumbers) {
  EXPECT_THAT(Expanded("n[01-03,7]"), ElementsAre("n01", "n02", "n03", "n7"));
  EXPECT_THAT(Expanded("login,n[9-11]-ib,x1"),
              ElementsAre("login", "n9-ib", "n10-ib", "n11-ib", "x1"));
}

TEST(HostListTest, SeveralBracketsInANameAreExpandedInOrder) {
  EXPECT_THAT(Expanded("r[1-2]c[0-1]"),
              ElementsAre("r1c0", "r1c1", "r2c0", "r2c1"));
}

TEST(HostListTest, NonsenseIsQuoted) {
  for (const char* list : {"n[1-", "n[3-1]", "n[a-b]", "", "n1,,n2", "n]1"}) {
    EXPECT_FALSE(ExpandHostList(list).ok()) << list;
  }
  EXPECT_THAT(std::string(ExpandHostList("n[3-1]").status().message()),
              HasSubstr("3-1"));
}

TEST(HostListTest, MoreHostsThanThereCanBeAreAnError) {
  for (const char* list :
       {"n[1-20000]x[1-20000]", "n[1-999999],m[1-999999]", "n[1-1000001]",
        "n[1-99999999999999999999]", "n[0-999999,0-999999,0-999999]"}) {
    const auto hosts = ExpandHostList(list);
    EXPECT_THAT(std::string(hosts.status().message()),
                HasSubstr("stands for more than 1000000 hosts"))
        << list;
  }
  EXPECT_FALSE(ExpandCounts("1(x1000000),1(x1000000)").ok());
}

TEST(AllocationTest, AFileThatCannotBeReadIsToldWithItsVariable) {
  for (const std::string variable : {"PE_HOSTFILE", "PBS_NODEFILE"}) {
    const auto allocation = Detect({{variable, "/gone"}});
    EXPECT_THAT(std::string(allocation.status().message()),
                HasSubstr(variable + "=/gone: "));
  }
}

TEST(AllocationTest, AFileWithoutHostsIsAnError) {
  for (const char* variable : {"PE_HOSTFILE", "PBS_NODEFILE"}) {
    const auto allocation = Detect({{variable, "/f"}}, {{"/f", "\n \n"}});
    EXPECT_THAT(std::string(allocation.status().message()),
                HasSubstr("/f names no host"))
        << variable;
  }
}

TEST(AllocationTest, SlotsBeyondAllNumbersAreAsManyAsThereCanBe) {
  std::string list = "a:1000000,a:1000000";
  for (int i = 0; i < 3000; ++i) list += ",h" + std::to_string(i) + ":1000000";
  const auto allocation = AllocationOfHostList(list);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->slots(), std::numeric_limits<int>::max());
}

TEST(CountsTest, RepetitionsAreExpanded) {
  EXPECT_THAT(*ExpandCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*ExpandCounts("48"), ElementsAre(48));
  for (const char* list : {"", "2(x", "2(x0)", "a", "-1"}) {
    EXPECT_FALSE(ExpandCounts(list).ok()) << list;
  }
}

TEST(HostArgumentTest, SlotsFollowTheColonAndAddUp) {
  EXPECT_THAT(AllocationOfHostList("h1:4,h2,h1:2")->hosts,
              ElementsAre(Host{"h1", 6}, Host{"h2", 1}));
  for (const char* list : {"h1:0", "h1:x", ":4", "", "h1,,h2", "h1:"}) {
    EXPECT_FALSE(AllocationOfHostList(list).ok()) << list;
  }
}

TEST(HostfileTest, LinesOfOpenMpiAndOfMpich) {
  const auto allocation = AllocationOfHostfile(
      "# a comment\nn01 slots=4 max_slots=8\nn02:2  # two\n\nn03\n", "hosts");
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts,
              ElementsAre(Host{"n01", 4}, Host{"n02", 2}, Host{"n03", 1}));
  EXPECT_EQ(allocation->source, "--hostfile hosts");
}

TEST(HostfileTest, WrongAndMissingLinesAreErrors) {
  EXPECT_THAT(
      std::string(AllocationOfHostfile("n01 slot=4\n", "f").status().message()),
      HasSubstr("n01 slot=4"));
  EXPECT_FALSE(AllocationOfHostfile("# nobody\n", "f").ok());
}

TEST(SlurmTest, NodesAndTasksPerNode) {
  const auto allocation = Detect({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_JOB_NODELIST", "n[01-03,7]"},
                                  {"SLURM_NTASKS", "7"},
                                  {"SLURM_TASKS_PER_NODE", "2(x3),1"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts, ElementsAre(Host{"n01", 2}, Host{"n02", 2},
                                             Host{"n03", 2}, Host{"n7", 1}));
  EXPECT_EQ(allocation->system, BatchSystem::kSlurm);
  EXPECT_EQ(allocation->source, "SLURM job 7");
  EXPECT_TRUE(allocation->slots_are_known);
}

TEST(SlurmTest, WithoutTasksCpusAreNoNumberOfRanks) {
  const auto allocation = Detect({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_JOB_NODELIST", "n[1-2]"},
                                  {"SLURM_JOB_CPUS_PER_NODE", "48(x2)"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_FALSE(allocation->slots_are_known);
  EXPECT_THAT(*DealRanks(*allocation, 3, false),
              ElementsAre(Host{"n1", 2}, Host{"n2", 1}));
}

TEST(SlurmTest, TasksThatNobodyAskedForAreCpus) {
  Variables variables = {{"SLURM_JOB_ID", "7"},
                         {"SLURM_JOB_NODELIST", "n[1-2]"},
                         {"SLURM_TASKS_PER_NODE", "48(x2)"}};
  const auto allocation = Detect(variables);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_FALSE(allocation->slots_are_known);
  EXPECT_THAT(*DealRanks(*allocation, 4, false),
              ElementsAre(Host{"n1", 2}, Host{"n2", 2}));
  for (const char* asked :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"}) {
    Variables more = variables;
    more.emplace_back(asked, "2");
    EXPECT_TRUE(Detect(more)->slots_are_known) << asked;
  }
}

// As SLURM 22.05 sets them for srun -N1 -n1 in a job of two nodes.
TEST(SlurmTest, AStepOfSlurmOnSomeOfTheNodesHasTheseOnly) {
  const auto allocation = Detect({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_JOB_NODELIST", "n[1-2]"},
                                  {"SLURM_NODELIST", "n[1-2]"},
                                  {"SLURM_NTASKS", "1"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NODELIST", "n2"},
                                  {"SLURM_STEP_NUM_TASKS", "1"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                  {"SLURM_TASKS_PER_NODE", "1"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  ASSERT_EQ(allocation->hosts.size(), 1U);
  EXPECT_EQ(allocation->hosts[0].name, "n2");
}

// As SLURM 22.05 sets them for salloc -N2 --ntasks-per-node=1 with
// use_interactive_step.
TEST(SlurmTest, AnInteractiveStepOfSlurmHasTheJobsNodes) {
  Variables variables = {{"SLURM_JOB_ID", "7"},
                         {"SLURM_JOB_NODELIST", "n[1-2]"},
                         {"SLURM_STEP_ID", "4294967290"},
                         {"SLURM_STEP_NODELIST", "n1"},
                         {"SLURM_STEP_NUM_TASKS", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1"},
                         {"SLURM_TASKS_PER_NODE", "2(x2)"}};
  // Its own task is none that the job asked for: these are CPUs.
  auto allocation = Detect(variables);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->hosts.size(), 2U);
  EXPECT_FALSE(allocation->slots_are_known);
  variables.emplace_back("SLURM_NTASKS", "4");
  allocation = Detect(variables);
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_EQ(allocation->hosts.size(), 2U);
  EXPECT_TRUE(allocation->slots_are_known);
}

TEST(SlurmTest, WhatDoesNotFitIsAnError) {
  EXPECT_THAT(std::string(Detect({{"SLURM_JOB_ID", "7"}}).status().message()),
              HasSubstr("SLURM_JOB_NODELIST"));
  EXPECT_THAT(std::string(Detect({{"SLURM_JOB_ID", "7"},
                                  {"SLURM_JOB_NODELIST", "n[1-3]"},
                                  {"SLURM_TASKS_PER_NODE", "2(x2)"}})
                              .status()
                              .message()),
              HasSubstr("does not fit the 3 hosts"));
}

TEST(PbsTest, ALineIsASlot) {
  const auto allocation =
      Detect({{"PBS_NODEFILE", "/f"}}, {{"/f", "n1\nn1\nn2\nn2\n"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts, ElementsAre(Host{"n1", 2}, Host{"n2", 2}));
  EXPECT_TRUE(allocation->slots_are_known);
  EXPECT_EQ(allocation->system, BatchSystem::kPbs);
}

TEST(PbsTest, OneLineAHostMayBeARankEach) {
  const auto allocation =
      Detect({{"PBS_NODEFILE", "/f"}}, {{"/f", "n1\nn2\n"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_FALSE(allocation->slots_are_known);
  EXPECT_TRUE(allocation->slots_are_likely);
  EXPECT_THAT(*DealRanks(*allocation, 2, false),
              ElementsAre(Host{"n1", 1}, Host{"n2", 1}));
  EXPECT_THAT(*DealRanks(*allocation, 4, false),
              ElementsAre(Host{"n1", 2}, Host{"n2", 2}));
  EXPECT_FALSE(Detect({{"PBS_NODEFILE", "/gone"}}).ok());
}

TEST(SgeTest, SecondWordIsTheNumberOfSlots) {
  const auto allocation =
      Detect({{"PE_HOSTFILE", "/f"}},
             {{"/f", "n1 8 all.q@n1 UNDEFINED\nn2 4 all.q@n2 <NULL>\n"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts, ElementsAre(Host{"n1", 8}, Host{"n2", 4}));
  EXPECT_EQ(allocation->system, BatchSystem::kSge);
  EXPECT_FALSE(Detect({{"PE_HOSTFILE", "/f"}}, {{"/f", "n1\n"}}).ok());
}

TEST(PjmTest, NodesAndProcessesPerNode) {
  const auto allocation = Detect(
      {{"PJM_JOBID", "9"}, {"PJM_NODE", "2"}, {"PJM_PROC_BY_NODE", "4"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts,
              ElementsAre(Host{"node0", 4}, Host{"node1", 4}));
  EXPECT_EQ(allocation->system, BatchSystem::kPjm);
}

TEST(PjmTest, ABoxOfNodesHasAsManyAsItsSidesMultiplied) {
  const auto nodes = [](const char* shape) {
    const auto allocation = Detect({{"PJM_JOBID", "9"}, {"PJM_NODE", shape}});
    return allocation.ok() ? allocation->hosts.size() : 0;
  };
  EXPECT_EQ(nodes("2x3x2"), 12u);
  EXPECT_EQ(nodes("4x6"), 24u);
  EXPECT_EQ(nodes("12"), 12u);
  for (const char* shape :
       {"", "x", "2x", "2x0", "-1", "2x-3", "two", "2*3", "1000000x1000000"}) {
    EXPECT_EQ(nodes(shape), 0u) << shape;
  }
}

TEST(PjmTest, UnevenRanksFillTheNodes) {
  const auto allocation = Detect(
      {{"PJM_JOBID", "9"}, {"PJM_NODE", "2"}, {"PJM_PROC_BY_NODE", "4"}});
  EXPECT_THAT(*DealRanks(*allocation, 6, false),
              ElementsAre(Host{"node0", 4}, Host{"node1", 2}));
  EXPECT_THAT(std::string(Detect({{"PJM_JOBID", "9"},
                                  {"PJM_NODE", "2"},
                                  {"PJM_PROC_BY_NODE", "0"}})
                              .status()
                              .message()),
              HasSubstr("PJM_PROC_BY_NODE=0 is no number of ranks"));
}

TEST(NoBatchSystemTest, ThisHostAlone) {
  const auto allocation = Detect({{"HOME", "/root"}});
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  EXPECT_THAT(allocation->hosts, IsEmpty());
  EXPECT_THAT(*DealRanks(*allocation, 5, false),
              ElementsAre(Host{"localhost", 5}));
}

TEST(DealRanksTest, HostsAreFilledInOrderAndEmptyOnesLeftOut) {
  const auto allocation = AllocationOfHostList("a:2,b:2,c:2");
  EXPECT_THAT(*DealRanks(*allocation, 3, false),
              ElementsAre(Host{"a", 2}, Host{"b", 1}));
}

TEST(DealRanksTest, TooManyRanksAreRefusedUnlessOversubscribed) {
  const auto allocation = AllocationOfHostList("a:2,b:1");
  EXPECT_THAT(std::string(DealRanks(*allocation, 5, false).status().message()),
              HasSubstr("5 ranks do not fit the 3 slots of -H"));
  EXPECT_THAT(*DealRanks(*allocation, 6, true),
              ElementsAre(Host{"a", 4}, Host{"b", 2}));
}

}  // namespace
}  // namespace hvdlite::launch
