#include "tools/hvdliterun/plan/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/hvdliterun/plan/slurm_list.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;

using Pairs = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Allocation> Detect(
    const Pairs& variables,
    const std::map<std::string, std::string>& files = {}) {
  return DetectAllocation(
      base::FakeEnvironment(variables),
      [files](const std::string& path) -> absl::StatusOr<std::string> {
        const auto file = files.find(path);
        if (file == files.end()) return absl::NotFoundError("no " + path);
        return file->second;
      });
}

std::string TextOf(const std::vector<Host>& hosts) {
  return absl::StrJoin(hosts, " ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.name, ":", host.slots);
  });
}

// "a:2 b:1", followed by how certain the slots are if they are not known.
std::string TextOf(const absl::StatusOr<Allocation>& allocation) {
  if (!allocation.ok()) return allocation.status().ToString();
  return absl::StrCat(TextOf(allocation->hosts),
                      allocation->slots_are_known    ? ""
                      : allocation->slots_are_likely ? " likely"
                                                     : " unknown");
}

std::string Expanded(const char* list) {
  const auto hosts = ExpandHostList(list);
  return hosts.ok() ? absl::StrJoin(*hosts, " ") : hosts.status().ToString();
}

TEST(HostListTest, BracketsContainRangesAndNumbers) {
  EXPECT_EQ(Expanded("n[01-03,7]"), "n01 n02 n03 n7");
  EXPECT_EQ(Expanded("login,n[9-11]-ib,x1"), "login n9-ib n10-ib n11-ib x1");
  EXPECT_EQ(Expanded("r[1-2]c[0-1]"), "r1c0 r1c1 r2c0 r2c1");
}

TEST(HostListTest, InvalidListsAndTooManyHostsAreErrors) {
  for (const char* list :
       {"n[1-", "n[3-1]", "n[a-b]", "", "n1,,n2", "n]1", "n[1-20000]x[1-20000]",
        "n[1-999999],m[1-999999]", "n[1-1000001]", "n[1-99999999999999999999]",
        "n[0-999999,0-999999,0-999999]"}) {
    EXPECT_FALSE(ExpandHostList(list).ok()) << list;
  }
  EXPECT_FALSE(ExpandCounts("1(x1000000),1(x1000000)").ok());
}

TEST(CountsTest, RepetitionsAreExpanded) {
  EXPECT_THAT(*ExpandCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(*ExpandCounts("48"), ElementsAre(48));
  for (const char* list : {"", "2(x", "2(x0)", "a", "-1"}) {
    EXPECT_FALSE(ExpandCounts(list).ok()) << list;
  }
}

TEST(NamedHostsTest, SlotsFollowTheColonAndAddUp) {
  EXPECT_EQ(TextOf(AllocationOfHostList("h1:4,h2,h1:2")), "h1:6 h2:1");
  std::string list = "a:1000000,a:1000000";
  for (int i = 0; i < 3000; ++i) list += ",h" + std::to_string(i) + ":1000000";
  EXPECT_EQ(AllocationOfHostList(list)->slots(),
            std::numeric_limits<int>::max());
}

TEST(NamedHostsTest, ReadsLinesOfOpenMpiAndMpich) {
  const auto allocation = AllocationOfHostfile(
      "# a comment\nn01 slots=4 max_slots=8\nn02:2  # two\n\nn03\n", "hosts");
  EXPECT_EQ(TextOf(allocation), "n01:4 n02:2 n03:1");
  EXPECT_EQ(allocation->source, "--hostfile hosts");
}

struct BatchJob {
  std::string hosts;  // in the format of TextOf()
  BatchSystem system;
  Pairs variables;
  std::map<std::string, std::string> files = {};
};

// Variables as the batch systems set them (SLURM 22.05 for srun and salloc).
const BatchJob kJobs[] = {
    {"n01:2 n02:2 n03:2 n7:1",
     BatchSystem::kSlurm,
     {{"SLURM_JOB_ID", "7"},
      {"SLURM_JOB_NODELIST", "n[01-03,7]"},
      {"SLURM_NTASKS", "7"},
      {"SLURM_TASKS_PER_NODE", "2(x3),1"}}},
    // Without tasks, the number of CPUs is not the number of ranks.
    {"n1:48 n2:48 unknown",
     BatchSystem::kSlurm,
     {{"SLURM_JOB_ID", "7"},
      {"SLURM_JOB_NODELIST", "n[1-2]"},
      {"SLURM_JOB_CPUS_PER_NODE", "48(x2)"}}},
    // Tasks that the job did not request do not count either.
    {"n1:48 n2:48 unknown",
     BatchSystem::kSlurm,
     {{"SLURM_JOB_ID", "7"},
      {"SLURM_JOB_NODELIST", "n[1-2]"},
      {"SLURM_TASKS_PER_NODE", "48(x2)"}}},
    // srun -N1 -n1 in a job of two nodes.
    {"n2:1",
     BatchSystem::kSlurm,
     {{"SLURM_JOB_ID", "7"},
      {"SLURM_JOB_NODELIST", "n[1-2]"},
      {"SLURM_NODELIST", "n[1-2]"},
      {"SLURM_NTASKS", "1"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_STEP_NODELIST", "n2"},
      {"SLURM_STEP_NUM_TASKS", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "1"},
      {"SLURM_TASKS_PER_NODE", "1"}}},
    // salloc -N2 with use_interactive_step. The job did not request the step's
    // own task.
    {"n1:2 n2:2 unknown",
     BatchSystem::kSlurm,
     {{"SLURM_JOB_ID", "7"},
      {"SLURM_JOB_NODELIST", "n[1-2]"},
      {"SLURM_STEP_ID", "4294967290"},
      {"SLURM_STEP_NODELIST", "n1"},
      {"SLURM_STEP_NUM_TASKS", "1"},
      {"SLURM_STEP_TASKS_PER_NODE", "1"},
      {"SLURM_TASKS_PER_NODE", "2(x2)"}}},
    // One line is one slot. One line for each host may mean one rank on each.
    {"n1:2 n2:2",
     BatchSystem::kPbs,
     {{"PBS_NODEFILE", "/f"}},
     {{"/f", "n1\nn1\nn2\nn2\n"}}},
    {"n1:1 n2:1 likely",
     BatchSystem::kPbs,
     {{"PBS_NODEFILE", "/f"}},
     {{"/f", "n1\nn2\n"}}},
    {"n1:8 n2:4",
     BatchSystem::kSge,
     {{"PE_HOSTFILE", "/f"}},
     {{"/f", "n1 8 all.q@n1 UNDEFINED\nn2 4 all.q@n2 <NULL>\n"}}},
    {"node0:4 node1:4",
     BatchSystem::kPjm,
     {{"PJM_JOBID", "9"}, {"PJM_NODE", "2"}, {"PJM_PROC_BY_NODE", "4"}}},
    {" unknown", BatchSystem::kNone, {{"HOME", "/root"}}},
};

TEST(BatchSystemTest, HostsAndSlotsAreThoseOfTheJob) {
  for (const BatchJob& job : kJobs) {
    const auto allocation = Detect(job.variables, job.files);
    EXPECT_EQ(TextOf(allocation), job.hosts);
    EXPECT_EQ(allocation->system, job.system) << job.hosts;
  }
  EXPECT_EQ(Detect(kJobs[0].variables)->source, "SLURM job 7");
}

TEST(BatchSystemTest, TasksThatTheJobAskedForAreSlots) {
  for (const char* asked :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"}) {
    Pairs variables = kJobs[2].variables;
    variables.emplace_back(asked, "2");
    EXPECT_TRUE(Detect(variables)->slots_are_known) << asked;
  }
  Pairs interactive = kJobs[4].variables;
  interactive.emplace_back("SLURM_NTASKS", "4");
  EXPECT_EQ(TextOf(Detect(interactive)), "n1:2 n2:2");
}

TEST(BatchSystemTest, BoxOfPjmNodesIsTheProductOfItsSides) {
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

TEST(DealRanksTest, FillsHostsInOrderOrEvenlyIfSlotsAreUnknown) {
  struct Deal {
    absl::StatusOr<Allocation> allocation;
    int ranks;
    const char* hosts;  // without empty ones
    bool oversubscribe = false;
  };
  const auto pbs = Detect(kJobs[6].variables, kJobs[6].files);
  const Deal deals[] = {
      {AllocationOfHostList("a:2,b:2,c:2"), 3, "a:2 b:1"},
      {Detect(kJobs[8].variables), 6, "node0:4 node1:2"},
      {Detect({}), 5, "localhost:5"},
      {Detect(kJobs[1].variables), 3, "n1:2 n2:1"},
      {Detect(kJobs[2].variables), 4, "n1:2 n2:2"},
      {pbs, 2, "n1:1 n2:1"},
      {pbs, 4, "n1:2 n2:2"},
      // Oversubscription distributes the rest one by one.
      {AllocationOfHostList("a:2,b:1"), 6, "a:4 b:2", true},
  };
  for (const auto& [allocation, ranks, hosts, oversubscribe] : deals) {
    ASSERT_TRUE(allocation.ok()) << allocation.status();
    const auto dealt = DealRanks(*allocation, ranks, oversubscribe);
    ASSERT_TRUE(dealt.ok()) << hosts << dealt.status();
    EXPECT_EQ(TextOf(*dealt), hosts);
  }
}

}  // namespace
}  // namespace hvdlite::launch
