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
    finding.seen = "one rank on each host: none to share memory with";
  } else if (shared.ok()) {
    finding.seen = "ranks of a host can share memory";
    if (!wanted) {
      finding.verdict = Verdict::kNote;
      absl::StrAppend(&finding.seen,
                      ", but HVDLITE_SHARED_MEMORY has MPI "
                      "reduce everything");
      finding.remedy = "unset HVDLITE_SHARED_MEMORY";
    }
  } else {
    finding.verdict = Verdict::kWarning;
    finding.seen = absl::StrCat(
        "ranks of a host cannot share memory, so that MPI reduces everything: ",
        shared.message());
    finding.remedy =
        "start all ranks of a host as one user, in one container and user "
        "namespace; for Apptainer see docs/clusters.md";
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
  // A page: how much there is to share is told when it is wanted.
  const absl::Status shared =
      collective::NodeMemory::Create(session.communicator, host, 1).status();
  if (!shared.ok() && !absl::IsUnavailable(shared)) return shared;
  if (topology.rank != 0) return Findings();
  // A bad configuration is the finding of another check.
  const bool wanted =
      LoadConfig(session.environment).value_or(Config()).shared_memory;
  return Findings{JudgeSharedMemory(topology, wanted, shared)};
}

}  // namespace hvdlite::doctor
