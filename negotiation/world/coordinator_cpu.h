// The CPU that this process's coordinator gets: whether a core can be its own,
// and whether ranks have to share theirs; and the CPUs that the process may
// use.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/logging.h"
#include "collective/communicator.h"
#include "collective/topology.h"

struct hwloc_topology;

namespace hvdlite::internal {

// Of the whole process, not only of the calling thread: where OMP_PROC_BIND is
// set, the OpenMP runtime binds the initial thread to one place while it loads,
// so that its affinity mask no longer tells; the runtime's places do.
cpu_set_t ProcessCpus();

// Such as "0-3,8".
std::string FormatCpus(const cpu_set_t& cpus);

// How many threads a parallel region that this thread starts would have; 1
// without OpenMP.
int OpenMpThreads();

// While it lives, the calling thread may use all of `cpus`; threads inherit the
// mask of the thread that creates them. Restores the former mask. Does nothing
// where the system refuses.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(const cpu_set_t& cpus);
  ~ScopedAffinity();
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;

 private:
  cpu_set_t former_;
  bool changed_ = false;
};

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

struct CoordinatorCpu {
  std::optional<int> of_its_own;
  bool oversubscribed = false;  // as IsOversubscribed
  // Of this host that may use the same CPUs as this rank, itself included.
  int ranks_on_the_same = 1;
};

// As Config::coordinator_core asks for it. Collective, since the ranks of a
// host share its cores; `choice` may differ by rank. Logs what was chosen, and
// why.
absl::StatusOr<CoordinatorCpu> ChooseCoordinatorCpu(
    const std::string& choice, collective::Communicator& communicator,
    const collective::Topology& topology, const base::Logger& logger);

}  // namespace hvdlite::internal
