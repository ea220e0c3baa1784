// Chooses the CPU of this process's background thread: whether it can have a
// core of its own, and whether ranks have to share cores. Also: the CPUs that
// the process may use.
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

// Returns the CPUs of the whole process, not only of the calling thread. If
// OMP_PROC_BIND is set, the OpenMP runtime binds the initial thread to one
// place while it loads. Then the runtime's places are used instead of the
// thread's affinity mask.
cpu_set_t ProcessCpus();

// Formats CPUs as "0-3,8".
std::string FormatCpus(const cpu_set_t& cpus);

// How many threads a parallel region that this thread starts would have; 1
// without OpenMP.
int OpenMpThreads();

// While an object exists, the calling thread may use all of `cpus`, and threads
// that it creates inherit the mask. Restores the former mask. Does nothing if
// the system refuses.
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

// The processes and threads that compute on the CPUs of a process.
struct CpuDemand {
  std::vector<int> cpus;    // of the process; the system's numbers
  int compute_threads = 1;  // of each process
  int processes = 1;        // that may use these CPUs, including this one
  int index = 0;            // of this process among them
};

// Returns a CPU for the background thread on a core that no compute thread
// needs. The processes that share the CPUs need a core for each compute thread
// and each background thread. Only whole cores count: a hyperthread next to a
// compute thread is not free, since both would take turns on one core. Compute
// threads are assumed to fill the cores from the first one on. The result is
// the last remaining core on the NUMA node of the first core, or else the last
// one. The next process takes the one before it.
std::optional<int> SpareCpu(hwloc_topology* topology, const CpuDemand& demand);

// SpareCpu for this machine; nullopt if its topology is unknown.
std::optional<int> SpareCpuHere(const CpuDemand& demand);

// True if a rank's host has fewer CPUs for its ranks than ranks, or if more
// ranks share this rank's CPUs than there are CPUs. Then a rank that spins
// keeps a peer from running.
bool IsOversubscribed(size_t rank, const std::vector<cpu_set_t>& cpus_of_rank,
                      const std::vector<std::string>& host_of_rank);

struct CoordinatorCpu {
  std::optional<int> of_its_own;
  bool oversubscribed = false;  // see IsOversubscribed
  // Ranks of this host that may use the same CPUs as this rank, including
  // itself.
  int ranks_on_the_same = 1;
};

// Follows Config::coordinator_core. Collective, since the ranks of a host share
// its cores; `choice` may differ by rank. Logs the choice and the reason.
absl::StatusOr<CoordinatorCpu> ChooseCoordinatorCpu(
    const std::string& choice, collective::Communicator& communicator,
    const collective::Topology& topology, const base::Logger& logger);

}  // namespace hvdlite::internal
