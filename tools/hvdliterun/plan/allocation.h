// Allocation: the hosts of a job and the number of ranks that each may take.
// They come from the command line or from the batch system that runs the job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::launch {

struct Host {
  std::string name;
  int slots = 1;

  bool operator==(const Host&) const = default;
};

// The name without its domain.
std::string ShortName(const std::string& host);

// "n01:4,n02:4".
std::string HostList(const std::vector<Host>& hosts);

enum class BatchSystem { kNone, kSlurm, kPbs, kSge, kPjm };

struct Allocation {
  std::vector<Host> hosts;  // empty: only this host, with any ranks that fit
  // The origin: "-H", "--hostfile F", "SLURM job 7", "this host".
  std::string source;
  BatchSystem system = BatchSystem::kNone;
  // False if the batch system allocates whole nodes and gives no number of
  // tasks: the slots are then only a default.
  bool slots_are_known = true;
  // If the slots are not known: they are probably right. Example: PBS with one
  // line for each host (mpiprocs=1, or no mpiprocs).
  bool slots_are_likely = false;

  int slots() const;
};

// Parses "h1:4,h2" (a host without a number has one slot). The slots of
// repeated hosts add up.
absl::StatusOr<Allocation> AllocationOfHostList(absl::string_view list);

// Parses lines "host", "host slots=4" (Open MPI) and "host:4" (MPICH). '#'
// starts a comment. The slots of repeated hosts add up. Messages contain
// `name`.
absl::StatusOr<Allocation> AllocationOfHostfile(absl::string_view text,
                                                const std::string& name);

// The batch system that runs this job, detected by its variables: PJM_JOBID,
// SLURM_JOB_ID, PE_HOSTFILE, PBS_NODEFILE.
BatchSystem DetectBatchSystem(const base::Environment& environment);

// The batch system's hosts; without a batch system: only this host. `read_file`
// returns the text of a file.
absl::StatusOr<Allocation> DetectAllocation(
    const base::Environment& environment,
    const std::function<absl::StatusOr<std::string>(const std::string& path)>&
        read_file);

// Distributes `ranks` to the hosts and fills one host after the other. More
// ranks than slots are an error; with `oversubscribe` the rest is distributed
// one by one. Without hosts all ranks are on "localhost".
absl::StatusOr<std::vector<Host>> DealRanks(const Allocation& allocation,
                                            int ranks, bool oversubscribe);

}  // namespace hvdlite::launch
