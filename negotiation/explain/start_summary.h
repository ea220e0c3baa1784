// What rank 0 logs of a world that has started: who takes part, by which
// transports, with which libraries, CPUs and settings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "hvdlite/config.h"

namespace hvdlite::internal {

// "hvdlite 1.0.0, LibTorch 1.13.1, ..." of build_info(), whose lines are of the
// form "LibTorch: 1.13.1, and more".
std::string VersionsOf(absl::string_view build_info);

// Of one rank; the ranks of a job have the same, as a rule.
struct ProcessFacts {
  std::string versions;  // as VersionsOf; what is above 251 bytes is cut
  int cpus = 0;          // that it may use
  int threads = 1;
  bool coordinator_has_core = false;  // of its own
};

// The facts of all ranks, by rank; none where rank 0 has not `wanted` them.
// Collective. Errors: the transport's.
absl::StatusOr<std::vector<ProcessFacts>> ExchangeFacts(
    collective::Communicator& communicator, const ProcessFacts& own,
    bool wanted);

// What makes the threads of `ranks` ranks of a host, `threads` each, wait for
// the `cpus` that all of them may use and no others (0: not known), as a
// warning that names the remedy; "" if nothing does.
std::string DescribeThreadsThatWait(int threads, int cpus, int ranks);

struct StartFacts {
  const collective::Topology& topology;
  const Config& config;
  std::string tensors_by;             // "shared memory and MPI"
  std::string control_by;             // "SHM+UCX"
  std::string cpu_list;               // of rank 0: "0-3"
  std::vector<ProcessFacts> of_rank;  // one entry per rank
};

// Three or four lines, and one for each group of ranks whose facts are others
// than rank 0's, without an end of line:
//
//   4 ranks on 2 hosts (n01: ranks 0-1, n02: ranks 2-3); tensors by shared
//   memory and MPI, control messages by SHM+UCX
//     hvdlite 1.0.0, compiler GCC 12.2.0, LibTorch 1.13.1, MPI Open MPI v4.1.4,
//     UCX 1.13.1, kernels AVX2
//     each rank: 2 CPUs (rank 0: 0-1), 2 threads, none of the CPUs for the
//     coordinator alone
//     settings: chunk_bytes=65536 (HVDLITE_CHUNK_BYTES)
//     ranks 2-3 differ: LibTorch 2.6.0; 4 threads
std::string SummariseStart(const StartFacts& facts);

}  // namespace hvdlite::internal
