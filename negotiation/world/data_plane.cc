#include "negotiation/world/data_plane.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"
#include "collective/shm/shm_communicator.h"

namespace hvdlite::internal {
namespace {

using collective::AllreduceTable;
using collective::Communicator;

// `text` of rank 0, on every rank. Collective.
absl::Status BroadcastText(Communicator& communicator, std::string& text) {
  uint64_t size = text.size();
  HVDLITE_RETURN_IF_ERROR(communicator.Broadcast(
      absl::MakeSpan(reinterpret_cast<std::byte*>(&size), sizeof(size)), 0));
  text.resize(size);
  return communicator.Broadcast(
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), size), 0);
}

// The table in the file of that name, which rank 0 reads for all. Collective.
absl::StatusOr<AllreduceTable> ReadTable(Communicator& communicator,
                                         const std::string& path) {
  std::string text;
  std::string problem;
  if (communicator.rank() == 0) {
    std::ifstream file(path);
    if (file) {
      text.assign(std::istreambuf_iterator<char>(file), {});
    } else {
      problem = absl::StrCat("rank 0 cannot read it: ", std::strerror(errno));
    }
  }
  HVDLITE_RETURN_IF_ERROR(BroadcastText(communicator, problem));
  HVDLITE_RETURN_IF_ERROR(BroadcastText(communicator, text));
  if (problem.empty()) {
    absl::StatusOr<AllreduceTable> table = AllreduceTable::Parse(text);
    if (table.ok()) return table;
    problem = std::string(table.status().message());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("HVDLITE_ALLREDUCE_TABLE=", path, ": ", problem));
}

}  // namespace

absl::Status ChooseDataPlane(const Config& config,
                             const collective::Topology& topology,
                             std::unique_ptr<Communicator>& communicator,
                             std::vector<std::string>& warnings) {
  AllreduceTable table = AllreduceTable::BuiltIn();
  if (!config.allreduce_table.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(table,
                             ReadTable(*communicator, config.allreduce_table));
  }
  if (config.deterministic) {
    communicator =
        collective::CreateRankOrderCommunicator(std::move(communicator));
    table = table.WithOneOrder();
  }
  if (!config.shared_memory) return absl::OkStatus();
  HVDLITE_ASSIGN_OR_RETURN(const base::Severity severity,
                           base::ParseSeverity(config.log_level));
  const base::Logger logger(severity, topology.rank);
  auto shared = collective::CreateShmCommunicator(
      communicator, topology.cross_rank_of_rank, table,
      {.warn = [logger](absl::string_view text) { logger.Warning(text); }});
  if (shared.ok()) {
    communicator = *std::move(shared);
  } else if (!absl::IsFailedPrecondition(shared.status())) {
    warnings.push_back(absl::StrCat(
        "ranks of a node cannot share memory, so that MPI reduces everything: ",
        shared.status().message()));
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::internal
