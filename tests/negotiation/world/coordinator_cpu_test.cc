#include "negotiation/world/coordinator_cpu.h"

#include <gtest/gtest.h>
#include <hwloc.h>

#include <numeric>
#include <optional>
#include <vector>

namespace hvdlite::internal {
namespace {

constexpr char kA64fx[] =
    "pack:1 numa:4(memory=8000000000) l2:1(size=8388608) core:12 pu:1";
constexpr char kDualXeon6248[] =
    "pack:2 [numa(memory=96000000000)] l3:1(size=28835840) core:20 pu:1";
// The second threads of the cores are numbered from 18 on.
constexpr char kC48xlarge[] =
    "pack:2 [numa(memory=32000000000)] l3:1 core:9 pu:2(indexes=2*18:18*1)";

class Machine {
 public:
  explicit Machine(const char* description) {
    EXPECT_EQ(hwloc_topology_init(&topology_), 0);
    EXPECT_EQ(hwloc_topology_set_synthetic(topology_, description), 0);
    EXPECT_EQ(hwloc_topology_load(topology_), 0);
  }
  ~Machine() { hwloc_topology_destroy(topology_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::optional<int> SpareCpu(const CpuDemand& demand) const {
    return internal::SpareCpu(topology_, demand);
  }

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::vector<int> Cpus(int first, int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), first);
  return cpus;
}

TEST(SpareCpuTest, CoreGroupOfA64fxGivesItsLastCore) {
  const Machine machine(kA64fx);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(12, 12), .compute_threads = 11}),
            23);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(12, 12), .compute_threads = 12}),
            std::nullopt);
}

TEST(SpareCpuTest, TheNumaNodeOfTheFirstCoreIsPreferred) {
  const Machine machine(kA64fx);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(0, 48), .compute_threads = 10}), 11);
  // That node is full of compute threads.
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(0, 48), .compute_threads = 12}), 47);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(0, 48), .compute_threads = 48}),
            std::nullopt);
}

TEST(SpareCpuTest, DualXeonGivesTheLastCoreOfASocket) {
  const Machine machine(kDualXeon6248);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(0, 20), .compute_threads = 19}), 19);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(20, 20), .compute_threads = 19}),
            39);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(0, 40), .compute_threads = 39}), 39);
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(20, 20), .compute_threads = 20}),
            std::nullopt);
}

TEST(SpareCpuTest, HyperthreadNextToAComputeThreadIsNotFree) {
  const Machine machine(kC48xlarge);
  std::vector<int> socket = Cpus(0, 9);
  const std::vector<int> siblings = Cpus(18, 9);
  socket.insert(socket.end(), siblings.begin(), siblings.end());
  EXPECT_EQ(machine.SpareCpu({.cpus = socket, .compute_threads = 9}),
            std::nullopt);
  EXPECT_EQ(machine.SpareCpu({.cpus = socket, .compute_threads = 8}), 8);
}

TEST(SpareCpuTest, CpuIsOneThatTheProcessMayUse) {
  const Machine machine(kC48xlarge);
  // These are the second threads of the first four cores.
  EXPECT_EQ(machine.SpareCpu({.cpus = Cpus(18, 4), .compute_threads = 3}), 21);
}

TEST(SpareCpuTest, ProcessesThatShareCpusTakeDifferentCores) {
  const Machine machine(kDualXeon6248);
  CpuDemand demand = {
      .cpus = Cpus(0, 20), .compute_threads = 9, .processes = 2, .index = 0};
  EXPECT_EQ(machine.SpareCpu(demand), 19);
  demand.index = 1;
  EXPECT_EQ(machine.SpareCpu(demand), 18);
  // There is one free core for two background threads.
  demand.cpus = Cpus(0, 19);
  EXPECT_EQ(machine.SpareCpu(demand), std::nullopt);
}

TEST(SpareCpuTest, NoCpusGiveNoCpu) {
  const Machine machine(kA64fx);
  EXPECT_EQ(machine.SpareCpu({.cpus = {}, .compute_threads = 1}), std::nullopt);
}

cpu_set_t Cpus(std::initializer_list<int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

TEST(FormatCpusTest, NeighboursAreRanges) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(FormatCpus(cpus), "");
  for (const int cpu : {0, 1, 2, 5, 8, 9}) CPU_SET(cpu, &cpus);
  EXPECT_EQ(FormatCpus(cpus), "0-2,5,8-9");
}

TEST(IsOversubscribedTest, OneCpuPerRankIsEnough) {
  const std::vector<std::string> hosts = {"a", "a"};
  EXPECT_FALSE(IsOversubscribed(0, {Cpus({0}), Cpus({1})}, hosts));
  EXPECT_FALSE(IsOversubscribed(0, {Cpus({0, 1}), Cpus({0, 1})}, hosts));
}

TEST(IsOversubscribedTest, RanksBoundToOneCpuAreOversubscribed) {
  const std::vector<std::string> hosts = {"a", "a", "a"};
  const std::vector<cpu_set_t> cpus = {Cpus({3}), Cpus({3}), Cpus({4, 5})};
  EXPECT_TRUE(IsOversubscribed(0, cpus, hosts));
  EXPECT_TRUE(IsOversubscribed(1, cpus, hosts));
  EXPECT_FALSE(IsOversubscribed(2, cpus, hosts));
}

TEST(IsOversubscribedTest, OverlappingSetsCountOnce) {
  const std::vector<std::string> hosts = {"a", "a", "a"};
  const std::vector<cpu_set_t> cpus = {Cpus({0, 1}), Cpus({0}), Cpus({1})};
  for (const size_t rank : {0, 1, 2}) {
    EXPECT_TRUE(IsOversubscribed(rank, cpus, hosts)) << rank;
  }
}

TEST(IsOversubscribedTest, OtherHostsDoNotCount) {
  EXPECT_FALSE(IsOversubscribed(1, {Cpus({0}), Cpus({0})}, {"a", "b"}));
}

}  // namespace
}  // namespace hvdlite::internal
