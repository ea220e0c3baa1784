#include "tools/hvdliterun/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/processor.h"
#include "tests/tools/hvdliterun/plan/machines.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CommCore kNone = {.kind = CommCore::Kind::kNone};

std::vector<RankPlan> Planned(const Machine& machine, int ranks,
                              const PlanOptions& options) {
  const auto plans = PlanHost(machine, ranks, options);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return plans.value_or(std::vector<RankPlan>(1));
}

// CPUs of each rank.
std::vector<std::string> Cpus(const std::vector<RankPlan>& plans) {
  std::vector<std::string> lists;
  for (const RankPlan& plan : plans)
    lists.push_back(support::FormatCpuList(plan.cpus));
  return lists;
}

TEST(MachineTest, KnowsPackagesNodesCoresAndThreads) {
  const Machine machine = MachineFrom(kC48xlarge);
  EXPECT_EQ(machine.packages(), 2);
  EXPECT_THAT(machine.numa_nodes, ElementsAre(0, 1));
  ASSERT_EQ(machine.cores.size(), 18u);
  EXPECT_EQ(machine.cpus(), 36);
  EXPECT_THAT(machine.cores[9].cpus, ElementsAre(9, 27));
  EXPECT_EQ(machine.cores[9].package, 1);
  EXPECT_EQ(machine.cores[9].numa_node, 1);
}

TEST(MachineTest, NodesWithoutCpusAreLeftOut) {
  // Each package has a node of its own, the machine one without CPUs of theirs.
  const Machine machine =
      MachineFrom("[numa(memory=1000000)] pack:2 [numa] core:2 pu:1");
  EXPECT_EQ(machine.cores.size(), 4u);
  const Machine one = MachineFrom("pack:1 [numa] [numa] core:2 pu:1");
  EXPECT_THAT(one.numa_nodes, ElementsAre(one.cores[0].numa_node));
}

TEST(MachineTest, DescribesItselfWithItsCaches) {
  EXPECT_EQ(MachineFrom(kA64fx).Describe(),
            "1 package, 4 NUMA nodes, 48 cores, 48 hardware threads, 4 L2 of "
            "8192 KiB");
}

TEST(MachineTest, ThisOneHasACoreAtLeast) {
  const auto machine = ThisMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_GE(machine->cores.size(), 1u);
}

TEST(PlanTest, ARankForEachNumaNodeOfA64fx) {
  const auto plans = Planned(MachineFrom(kA64fx), 4,
                             {.domain = Domain::kNuma, .comm_core = kNone});
  EXPECT_THAT(Cpus(plans), ElementsAre("0-11", "12-23", "24-35", "36-47"));
  EXPECT_EQ(plans[3].threads, 12);
  EXPECT_EQ(plans[3].comm_core, std::nullopt);
}

TEST(PlanTest, TheCoordinatorTakesTheLastOfEightCoresOrMore) {
  const Machine machine = MachineFrom(kA64fx);
  const auto plans = Planned(machine, 4, {.domain = Domain::kNuma});
  EXPECT_EQ(plans[1].threads, 11);
  EXPECT_EQ(CoordinatorCpu(machine, plans[1]), 23);
  // It may use the coordinator's core; its OpenMP threads do not.
  EXPECT_EQ(support::FormatCpuList(plans[1].cpus), "12-23");
  EXPECT_THAT(OpenMpPlaces(machine, plans[1]), HasSubstr("{21},{22}"));
  EXPECT_THAT(OpenMpPlaces(machine, plans[1]),
              ::testing::Not(HasSubstr("{23}")));

  EXPECT_EQ(CoordinatorCpu(machine, Planned(machine, 1, {})[0]), 11)
      << "on the first NUMA node, as hvdlite itself would choose";
  const Machine small = MachineFrom("core:7 pu:1");
  EXPECT_EQ(Planned(small, 1, {})[0].threads, 7);
  const Machine large = MachineFrom("core:8 pu:1");
  EXPECT_EQ(Planned(large, 1, {})[0].threads, 7);
}

TEST(PlanTest, ACoreThatThreadsLeaveIsTheCoordinators) {
  const Machine machine = MachineFrom("core:4 pu:1");
  const auto plans = Planned(machine, 1, {.threads = 3});
  EXPECT_EQ(plans[0].threads, 3);
  EXPECT_EQ(CoordinatorCpu(machine, plans[0]), 3);
  EXPECT_EQ(CoordinatorCpu(machine, Planned(machine, 1, {.threads = 4})[0]),
            std::nullopt);
}

TEST(PlanTest, TheCoordinatorsCoreCanBeNamed) {
  const Machine machine = MachineFrom(kDualXeon6248);
  const auto plans =
      Planned(machine, 2,
              {.domain = Domain::kSocket,
               .comm_core = {.kind = CommCore::Kind::kNumber, .number = 0}});
  EXPECT_EQ(CoordinatorCpu(machine, plans[0]), 0);
  EXPECT_EQ(CoordinatorCpu(machine, plans[1]), 20);
  EXPECT_EQ(plans[1].threads, 19);
}

TEST(PlanTest, HyperthreadsBelongToTheirCores) {
  const Machine machine = MachineFrom(kC48xlarge);
  const auto plans = Planned(machine, 2, {.domain = Domain::kSocket});
  EXPECT_THAT(Cpus(plans), ElementsAre("0-8,18-26", "9-17,27-35"));
  EXPECT_EQ(plans[0].threads, 8);  // cores, and one for the coordinator
  EXPECT_EQ(OpenMpPlaces(machine, plans[1]),
            "{9,27},{10,28},{11,29},{12,30},{13,31},{14,32},{15,33},{16,34}");
}

TEST(PlanTest, ThreadsBetweenCoresAndCpusLeaveNoCoreIdle) {
  const Machine machine = MachineFrom("core:4 pu:4");
  const auto plans = Planned(machine, 1, {.threads = 8, .comm_core = kNone});
  EXPECT_EQ(OpenMpPlaces(machine, plans[0]),
            "{0,1,2,3},{4,5,6,7},{8,9,10,11},{12,13,14,15}");
}

TEST(PlanTest, AsManyThreadsAsCpusGetAHyperthreadEach) {
  const Machine machine = MachineFrom("core:2 pu:2");
  const auto plans = Planned(machine, 1, {.threads = 4, .comm_core = kNone});
  EXPECT_EQ(OpenMpPlaces(machine, plans[0]), "{0},{1},{2},{3}");
}

TEST(PlanTest, RanksOfADomainShareItEvenly) {
  const Machine machine = MachineFrom(kDualXeon6248);
  EXPECT_THAT(Cpus(Planned(machine, 4, {.domain = Domain::kSocket})),
              ElementsAre("0-9", "10-19", "20-29", "30-39"));
  // Three ranks work in step: none gets more cores than the others.
  EXPECT_THAT(Cpus(Planned(machine, 3, {.domain = Domain::kSocket})),
              ElementsAre("0-9", "10-19", "20-29"));
  EXPECT_THAT(Cpus(Planned(machine, 2, {})), ElementsAre("0-19", "20-39"));
  EXPECT_THAT(Cpus(Planned(machine, 2, {.domain = Domain::kCore})),
              ElementsAre("0", "1"));
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

TEST(PlanTest, MemoryMayComeFromNodesWithoutCpusAndNotFromOnesThatAreNotThere) {
  // As the fast memory of a processor that shows it as a node of its own.
  const Machine machine = MachineFrom("pack:1 [numa] [numa] core:2 pu:1");
  EXPECT_THAT(machine.memory_nodes, ElementsAre(0, 1));
  EXPECT_THAT(
      Planned(machine, 1, {.memory = *ParseMemory("bind=1")})[0].memory_nodes,
      ElementsAre(1));
}

TEST(PlanTest, OversubscriptionIsRefusedOrMarked) {
  const Machine machine = MachineFrom("core:2 pu:1");
  const auto plans = Planned(machine, 3, {.oversubscribe = true});
  EXPECT_THAT(Cpus(plans), ElementsAre("0-1", "0-1", "0-1"));
  EXPECT_EQ(plans[0].threads, 1);
  EXPECT_TRUE(plans[0].oversubscribed);
  EXPECT_TRUE(Planned(machine, 1, {.threads = 3, .oversubscribe = true})[0]
                  .oversubscribed);
  EXPECT_FALSE(Planned(machine, 2, {.oversubscribe = true})[0].oversubscribed);
}

TEST(NamesTest, AreReadAsTheyAreWritten) {
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
