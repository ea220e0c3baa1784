#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "base/status_macros.h"
#include "collective/shm/shared_memory.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {

int LargestHost(const collective::Topology& topology) {
  int largest = 0;
  for (int host = 0; host < topology.cross_size; ++host) {
    largest = std::max(largest, static_cast<int>(absl::c_count(
                                    topology.cross_rank_of_rank, host)));
  }
  return largest;
}

}  // namespace

Finding JudgeSharedMemory(const collective::Topology& topology, bool wanted,
                          const absl::Status& shared) {
  Finding finding = {.seen = "",
                     .ranks = RanksUpTo(static_cast<size_t>(topology.size))};
  if (LargestHost(topology) == 1) {
    finding.seen = "each host has one rank: no memory is shared";
  } else if (shared.ok()) {
    finding.seen = "ranks of a host can share memory";
    if (!wanted) {
      finding.verdict = Verdict::kNote;
      absl::StrAppend(&finding.seen,
                      ", but HVDLITE_SHARED_MEMORY turns this off: MPI "
                      "reduces everything");
      finding.remedy = "unset HVDLITE_SHARED_MEMORY";
    }
  } else {
    finding.verdict = Verdict::kWarning;
    finding.seen = absl::StrCat(
        "ranks of a host cannot share memory, so MPI reduces everything: ",
        shared.message());
    finding.remedy =
        "start all ranks of a host as the same user, in the same container and "
        "user namespace; for Apptainer see docs/clusters.md";
  }
  return finding;
}

absl::StatusOr<Findings> RunSharedMemory(Session& session) {
  const collective::Topology& topology = session.topology;
  std::vector<int> host;
  for (const int rank : RanksUpTo(static_cast<size_t>(topology.size))) {
    if (topology.cross_rank_of_rank[rank] == topology.cross_rank) {
      host.push_back(rank);
    }
  }
  // One page is enough for this test. hvdlite itself reports it if there is too
  // little shared memory.
  const absl::Status shared =
      collective::NodeMemory::Create(session.communicator, host, 1).status();
  if (!shared.ok() && !absl::IsUnavailable(shared)) return shared;
  if (topology.rank != 0) return Findings();
  // The check variables reports a bad configuration.
  const bool wanted =
      LoadConfig(session.environment).value_or(Config()).shared_memory;
  return Findings{JudgeSharedMemory(topology, wanted, shared)};
}

}  // namespace hvdlite::doctor
