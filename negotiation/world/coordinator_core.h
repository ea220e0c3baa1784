// Which core the coordinator's thread can have to itself, and whether ranks
// have to share theirs.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

struct hwloc_topology;

namespace hvdlite::internal {

// Who computes on the CPUs that a process may use.
struct CpuDemand {
  std::vector<int> cpus;    // of the process, by the system's numbers
  int compute_threads = 1;  // of each process
  int processes = 1;        // that may use these CPUs, this one included
  int index = 0;            // of this process among them
};

// A CPU for the coordinator's thread, on a core that no compute thread needs:
// there must be a core for each compute thread and each coordinator of the
// processes that share the CPUs. Threads count cores: a hyperthread beside a
// compute thread is not spare, since the two would take turns on one core.
// Compute threads are taken to fill the cores from the first on; of the others
// the last one is chosen that shares the NUMA node of the first core, else the
// last one; the next process takes the next one down.
std::optional<int> SpareCpu(hwloc_topology* topology, const CpuDemand& demand);

// On this machine; none where its topology is unknown.
std::optional<int> SpareCpuHere(const CpuDemand& demand);

// Whether a rank's host has fewer CPUs for its ranks than ranks, or this rank
// shares its own with more ranks than they are: who spins there keeps a peer
// from running.
bool IsOversubscribed(size_t rank, const std::vector<cpu_set_t>& cpus_of_rank,
                      const std::vector<std::string>& host_of_rank);

}  // namespace hvdlite::internal
