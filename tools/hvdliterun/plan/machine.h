// Machine: what hwloc says about one node: its cores, where they lie, and which
// of them may be used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::launch {

struct MachineCore {
  std::vector<int> cpus;  // hardware threads, by the system's numbers
  int package = 0;        // from 0, in the machine's order
  int numa_node = 0;      // by the system's number
};

struct MachineCache {
  int level = 0;
  int count = 0;
  int64_t bytes = 0;  // of one
};

struct Machine {
  // Those with a CPU that may be used, in the machine's order, in which
  // neighbours share caches. Only usable CPUs are listed.
  std::vector<MachineCore> cores;
  // Those with usable cores, in ascending order: nodes without CPUs (memory
  // alone) are left out.
  std::vector<int> numa_nodes;
  // Those that memory may come from, likewise: nodes without CPUs, too.
  std::vector<int> memory_nodes;
  std::vector<MachineCache> caches;  // shared or large ones: levels 2 and up

  int packages() const;
  int cpus() const;
  // "2 packages, 2 NUMA nodes, 18 cores, 36 hardware threads, 2 L3 of 25 MiB".
  std::string Describe() const;
};

// A machine that is not here: in hwloc's language (hwloc(7), "Synthetic
// topologies"), such as "pack:2 [numa] core:9 pu:2", or a file FILE.xml that
// `lstopo FILE.xml` wrote, whose allowed CPUs are kept.
absl::StatusOr<Machine> MachineOf(const std::string& text);

// This one: CPUs that the control group and the affinity mask of this process
// leave.
absl::StatusOr<Machine> ThisMachine();

}  // namespace hvdlite::launch
