#include "tools/hvdliterun/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/processor.h"
#include "tests/tools/hvdliterun/plan/machines.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CommCore kNone = {.kind = CommCore::Kind::kNone};

std::vector<RankPlan> Planned(const Machine& machine, int ranks,
                              const PlanOptions& options) {
  const auto plans = PlanHost(machine, ranks, options);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return plans.value_or(std::vector<RankPlan>(1));
}

TEST(MachineTest, ReadsPackagesNodesCoresAndThreads) {
  const Machine machine = MachineFrom(kC48xlarge);
  EXPECT_EQ(machine.packages(), 2);
  EXPECT_THAT(machine.numa_nodes, ElementsAre(0, 1));
  ASSERT_EQ(machine.cores.size(), 18u);
  EXPECT_EQ(machine.cpus(), 36);
  EXPECT_THAT(machine.cores[9].cpus, ElementsAre(9, 27));
  EXPECT_EQ(machine.cores[9].package, 1);
  EXPECT_EQ(machine.cores[9].numa_node, 1);
}

TEST(MachineTest, NodesWithoutCpusAreNotListed) {
  // Each package has its own NUMA node; the machine has one without CPUs.
  const Machine machine =
      MachineFrom("[numa(memory=1000000)] pack:2 [numa] core:2 pu:1");
  EXPECT_EQ(machine.cores.size(), 4u);
  const Machine one = MachineFrom("pack:1 [numa] [numa] core:2 pu:1");
  EXPECT_THAT(one.numa_nodes, ElementsAre(one.cores[0].numa_node));
}

TEST(MachineTest, ThisMachineHasAtLeastOneCore) {
  const auto machine = ThisMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_GE(machine->cores.size(), 1u);
}

// For each rank: its CPUs, xTHREADS, cCPU of the coordinator if it has one, and
// "!" if it is oversubscribed.
std::string TextOf(const Machine& machine, const std::vector<RankPlan>& plans) {
  return absl::StrJoin(plans, " ", [&](std::string* out, const RankPlan& plan) {
    const std::optional<int> cpu = CoordinatorCpu(machine, plan);
    absl::StrAppend(out, support::FormatCpuList(plan.cpus), "x", plan.threads,
                    cpu.has_value() ? absl::StrCat("c", *cpu) : "",
                    plan.oversubscribed ? "!" : "");
  });
}

TEST(PlanTest, RanksGetTheirShareOfTheMachine) {
  constexpr CommCore kFirst = {.kind = CommCore::Kind::kNumber, .number = 0};
  struct Case {
    const char* machine;
    int ranks;
    PlanOptions options;
    const char* plans;
  };
  const Case cases[] = {
      {kA64fx,
       4,
       {.domain = Domain::kNuma, .comm_core = kNone},
       "0-11x12 12-23x12 24-35x12 36-47x12"},
      // With eight or more cores, the coordinator gets the last one. The
      // process may use it, too.
      {kA64fx,
       4,
       {.domain = Domain::kNuma},
       "0-11x11c11 12-23x11c23 24-35x11c35 36-47x11c47"},
      // It is on the first NUMA node, as in hvdlite's own choice.
      {kA64fx, 1, {}, "0-47x47c11"},
      {"core:7 pu:1", 1, {}, "0-6x7"},
      {"core:8 pu:1", 1, {}, "0-7x7c7"},
      // Or it gets a core that --threads leaves free, or a named one.
      {"core:4 pu:1", 1, {.threads = 3}, "0-3x3c3"},
      {"core:4 pu:1", 1, {.threads = 4}, "0-3x4"},
      {kDualXeon6248,
       2,
       {.domain = Domain::kSocket, .comm_core = kFirst},
       "0-19x19c0 20-39x19c20"},
      // Cores are counted, not hyperthreads.
      {kC48xlarge,
       2,
       {.domain = Domain::kSocket},
       "0-8,18-26x8c8 9-17,27-35x8c17"},
      {kDualXeon6248,
       4,
       {.domain = Domain::kSocket},
       "0-9x9c9 10-19x9c19 20-29x9c29 30-39x9c39"},
      // All ranks get the same number of cores, because they work in step.
      {kDualXeon6248,
       3,
       {.domain = Domain::kSocket},
       "0-9x9c9 10-19x9c19 20-29x9c29"},
      {kDualXeon6248, 2, {}, "0-19x19c19 20-39x19c39"},
      {kDualXeon6248, 2, {.domain = Domain::kCore}, "0x1 1x1"},
      {"core:2 pu:1", 3, {.oversubscribe = true}, "0-1x1! 0-1x1! 0-1x1!"},
      {"core:2 pu:1", 1, {.threads = 3, .oversubscribe = true}, "0-1x3!"},
      {"core:2 pu:1", 2, {.oversubscribe = true}, "0x1 1x1"},
  };
  for (const auto& [description, ranks, options, plans] : cases) {
    const Machine machine = MachineFrom(description);
    EXPECT_EQ(TextOf(machine, Planned(machine, ranks, options)), plans)
        << ranks << " ranks on " << description;
  }
}

TEST(PlanTest, PlacesAreComputingCoresOrTheirHyperthreads) {
  struct Case {
    const char* machine;
    std::optional<int> threads;
    CommCore comm_core;
    const char* places;
  };
  constexpr Case kCases[] = {
      // The coordinator's core is no place.
      {"core:8 pu:2", {}, {}, "{0,1},{2,3},{4,5},{6,7},{8,9},{10,11},{12,13}"},
      // With more threads than cores but fewer than CPUs no core is idle.
      {"core:4 pu:4", 8, kNone,
       "{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}"},
      {"core:2 pu:2", 4, kNone, "{0},{1},{2},{3}"},
  };
  for (const auto& [description, threads, comm_core, places] : kCases) {
    const Machine machine = MachineFrom(description);
    EXPECT_EQ(OpenMpPlaces(machine, Planned(machine, 1,
                                            {.threads = threads,
                                             .comm_core = comm_core})[0]),
              places);
  }
}

TEST(PlanTest, MemoryNodesFollowThePolicy) {
  const Machine machine = MachineFrom(kA64fx);
  const auto nodes = [&](const char* memory) {
    return Planned(machine, 4,
                   {.domain = Domain::kNuma, .memory = *ParseMemory(memory)})[2]
        .memory_nodes;
  };
  EXPECT_THAT(nodes("local"), IsEmpty());
  EXPECT_THAT(nodes("inherit"), IsEmpty());
  EXPECT_THAT(nodes("bind"), ElementsAre(2));
  EXPECT_THAT(nodes("interleave"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(nodes("preferred"), ElementsAre(2));
  EXPECT_THAT(nodes("bind=0"), ElementsAre(0));
  EXPECT_THAT(nodes("interleave=1,3"), ElementsAre(1, 3));
  EXPECT_THAT(nodes("preferred=3"), ElementsAre(3));
}

TEST(PlanTest, MemoryMayUseNodesWithoutCpusButNotMissingOnes) {
  // For example fast memory that a processor presents as a separate node.
  const Machine machine = MachineFrom("pack:1 [numa] [numa] core:2 pu:1");
  EXPECT_THAT(machine.memory_nodes, ElementsAre(0, 1));
  EXPECT_THAT(
      Planned(machine, 1, {.memory = *ParseMemory("bind=1")})[0].memory_nodes,
      ElementsAre(1));
}

TEST(NamesTest, NamesRoundTrip) {
  for (const char* text : {"node", "socket", "numa", "core"}) {
    EXPECT_EQ(DomainName(*ParseDomain(text)), text);
  }
  for (const char* text : {"local", "interleave", "bind", "preferred",
                           "inherit", "bind=0,2-3", "preferred=1"}) {
    EXPECT_EQ(MemoryText(*ParseMemory(text)), text);
  }
  for (const char* text : {"numa", "local=0", "bind=", "bind=x",
                           "preferred=0,1", "inherit=1", "bind=-1"}) {
    EXPECT_FALSE(ParseMemory(text).ok()) << text;
  }
  for (const char* text : {"none", "auto", "3"}) {
    EXPECT_EQ(CommCoreText(*ParseCommCore(text)), text);
  }
  EXPECT_FALSE(ParseCommCore("-1").ok());
}

}  // namespace
}  // namespace hvdlite::launch
