// Machine: the cores of one node, their places, and which may be used. hwloc
// provides them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::launch {

struct MachineCore {
  std::vector<int> cpus;  // hardware threads, numbered by the system
  int package = 0;        // numbered from 0, in the machine's order
  int numa_node = 0;      // numbered by the system
};

struct MachineCache {
  int level = 0;
  int count = 0;
  int64_t bytes = 0;  // of one cache
};

struct Machine {
  // Cores with a usable CPU, in the machine's order: neighbours share caches.
  // Only usable CPUs are listed.
  std::vector<MachineCore> cores;
  // NUMA nodes with usable cores, in ascending order. Nodes without CPUs (only
  // memory) are not listed.
  std::vector<int> numa_nodes;
  // NUMA nodes from which memory may come, in ascending order, including nodes
  // without CPUs.
  std::vector<int> memory_nodes;
  std::vector<MachineCache> caches;  // shared or large ones: levels 2 and up

  int packages() const;
  int cpus() const;
  // "2 packages, 2 NUMA nodes, 18 cores, 36 hardware threads, 2 L3 of 25 MiB".
  std::string Describe() const;
};

// Another machine: a description in hwloc's language (hwloc(7), "Synthetic
// topologies"), such as "pack:2 [numa] core:9 pu:2", or a file FILE.xml that
// `lstopo FILE.xml` wrote. The allowed CPUs of the file are respected.
absl::StatusOr<Machine> MachineOf(const std::string& text);

// This machine, with the CPUs that the control group and the affinity mask of
// this process allow.
absl::StatusOr<Machine> ThisMachine();

}  // namespace hvdlite::launch
