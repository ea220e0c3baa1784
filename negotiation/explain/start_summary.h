// The message that rank 0 logs when a world has started: ranks, hosts,
// transports, libraries, CPUs and settings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "hvdlite/config.h"

namespace hvdlite::internal {

// Returns "hvdlite 1.0.0, LibTorch 1.13.1, ..." for the text of build_info(),
// which has lines such as "LibTorch: 1.13.1, and more".
std::string VersionsOf(absl::string_view build_info);

// The facts of one rank. They are usually the same on all ranks of a job.
struct ProcessFacts {
  std::string versions;  // as VersionsOf; cut after 251 bytes
  int cpus = 0;          // that the rank may use
  int threads = 1;
  bool coordinator_has_core = false;  // a core of its own
};

// Returns the facts of all ranks, by rank; empty if rank 0 did not pass
// `wanted`. Collective. Errors of the transport.
absl::StatusOr<std::vector<ProcessFacts>> ExchangeFacts(
    collective::Communicator& communicator, const ProcessFacts& own,
    bool wanted);

// Returns a warning, with the remedy, if ranks of a host share too few CPUs, so
// that their threads wait for each other; otherwise "". There are `ranks` ranks
// with `threads` threads each. They alone may use `cpus` CPUs; 0: not known.
std::string DescribeThreadsThatWait(int threads, int cpus, int ranks);

struct StartFacts {
  const collective::Topology& topology;
  const Config& config;
  std::string tensors_by;             // "shared memory and MPI"
  std::string control_by;             // "SHM+UCX"
  std::string cpu_list;               // CPUs of rank 0: "0-3"
  std::vector<ProcessFacts> of_rank;  // one entry per rank
};

// Returns three or four lines, without a final newline. One line follows for
// each group of ranks whose facts differ from rank 0's:
//
//   4 ranks on 2 hosts (n01: ranks 0-1, n02: ranks 2-3); tensors by shared
//   memory and MPI, control messages by SHM+UCX
//     hvdlite 1.0.0, compiler GCC 12.2.0, LibTorch 1.13.1, MPI Open MPI v4.1.4,
//     UCX 1.13.1, kernels AVX2
//     each rank: 2 CPUs (rank 0: 0-1), 2 threads, no CPU reserved for the
//     background thread
//     settings: chunk_bytes=65536 (HVDLITE_CHUNK_BYTES)
//     ranks 2-3 differ: LibTorch 2.6.0; 4 threads
std::string SummariseStart(const StartFacts& facts);

}  // namespace hvdlite::internal
