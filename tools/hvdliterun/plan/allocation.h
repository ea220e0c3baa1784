// Allocation: the hosts of a job and how many ranks each may take, from the
// command line or from the batch system that runs the job.
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

// Without its domain.
std::string ShortName(const std::string& host);

// "n01:4,n02:4".
std::string HostList(const std::vector<Host>& hosts);

enum class BatchSystem { kNone, kSlurm, kPbs, kSge, kPjm };

struct Allocation {
  std::vector<Host> hosts;  // empty: this host alone, as many ranks as fit
  // Where it is from: "-H", "--hostfile F", "SLURM job 7", "this host".
  std::string source;
  BatchSystem system = BatchSystem::kNone;
  // Slots are nothing but a default where the batch system gives whole nodes
  // and names no number of tasks.
  bool slots_are_known = true;
  // If they are not known: they may be meant nevertheless, as PBS's single line
  // for each host (mpiprocs=1, or left out).
  bool slots_are_likely = false;

  int slots() const;
};

// "h1:4,h2" (a host without a number has one slot); repeated hosts add up.
absl::StatusOr<Allocation> AllocationOfHostList(absl::string_view list);

// Lines "host", "host slots=4" (Open MPI), "host:4" (MPICH); '#' begins a
// comment; repeated hosts add up. `name` for messages.
absl::StatusOr<Allocation> AllocationOfHostfile(absl::string_view text,
                                                const std::string& name);

// Whose job this is, by its variables: PJM_JOBID, SLURM_JOB_ID, PE_HOSTFILE,
// PBS_NODEFILE.
BatchSystem DetectBatchSystem(const base::Environment& environment);

// The batch system's hosts. Without one: this host alone. `read_file` returns
// the text of a file.
absl::StatusOr<Allocation> DetectAllocation(
    const base::Environment& environment,
    const std::function<absl::StatusOr<std::string>(const std::string& path)>&
        read_file);

// How many of `ranks` each host gets, in order: hosts are filled up one after
// the other. More ranks than slots are refused unless `oversubscribe`, which
// deals the rest one each. Without hosts: all on "localhost".
absl::StatusOr<std::vector<Host>> DealRanks(const Allocation& allocation,
                                            int ranks, bool oversubscribe);

}  // namespace hvdlite::launch
