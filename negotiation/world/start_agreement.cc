#include "negotiation/world/start_agreement.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/config/config_loader.h"
#include "base/descriptor.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"

namespace hvdlite::internal {
namespace {

using collective::AllreduceTable;
using collective::Communicator;
using collective::DataType;
using collective::ReduceOp;

template <typename T>
absl::Span<std::byte> BytesOf(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

// Every rank returns `root`'s text.
absl::Status BroadcastText(Communicator& communicator, int root,
                           std::string& text) {
  std::vector<int64_t> length = {static_cast<int64_t>(text.size())};
  HVDLITE_RETURN_IF_ERROR(communicator.Broadcast(BytesOf(length), root));
  std::vector<char> bytes(text.begin(), text.end());
  bytes.resize(static_cast<size_t>(length.front()));
  if (bytes.empty()) {
    text.clear();
    return absl::OkStatus();
  }
  HVDLITE_RETURN_IF_ERROR(communicator.Broadcast(BytesOf(bytes), root));
  text.assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

std::string CanonicalText(const Config& config) {
  std::vector<std::string> lines;
  for (const ConfigValue& value : ConfigValues(config)) {
    if (value.same_on_all_ranks) {
      lines.push_back(absl::StrCat(value.name, "=", value.to_agree_on));
    }
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::Status CheckLauncher(const base::Environment& environment, int size) {
  if (size > 1) return absl::OkStatus();
  const std::optional<base::PromisedRanks> promised =
      base::SeveralRanksPromised(environment);
  if (!promised.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "MPI sees one rank only, but the launcher started ", promised->count,
      " (", promised->variable, "=", promised->count,
      "): each would train alone. The program or libhvdlite was probably "
      "built with another MPI than the launcher's. Use the mpirun of that MPI "
      "(or srun with its --mpi plugin), or rebuild hvdlite with the "
      "launcher's MPI. To run processes that train alone on purpose, set "
      "HVDLITE_BACKEND=single"));
}

absl::Status AgreeOnConfig(Communicator& communicator, const Config& config) {
  const int size = communicator.size();
  if (size == 1) return absl::OkStatus();
  const std::string own_text = CanonicalText(config);
  std::string root_text = own_text;
  HVDLITE_RETURN_IF_ERROR(BroadcastText(communicator, /*root=*/0, root_text));
  const std::vector<std::string> own_lines = absl::StrSplit(own_text, '\n');
  const std::vector<std::string> root_lines = absl::StrSplit(root_text, '\n');

  // Index: differs[line * size + rank].
  std::vector<uint8_t> differs(root_lines.size() * static_cast<size_t>(size));
  for (size_t line = 0; line < root_lines.size(); ++line) {
    if (!absl::c_linear_search(own_lines, root_lines[line])) {
      differs[line * static_cast<size_t>(size) +
              static_cast<size_t>(communicator.rank())] = 1;
    }
  }
  HVDLITE_RETURN_IF_ERROR(communicator.Allreduce(
      BytesOf(differs), DataType::kUint8, ReduceOp::kMax));

  std::vector<std::string> complaints;
  for (size_t line = 0; line < root_lines.size(); ++line) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) {
      if (differs[line * static_cast<size_t>(size) +
                  static_cast<size_t>(rank)] != 0) {
        ranks.push_back(rank);
      }
    }
    if (ranks.empty()) continue;
    complaints.push_back(absl::StrCat(
        root_lines[line], " on rank 0 differs on rank",
        ranks.size() == 1 ? " " : "s ", absl::StrJoin(ranks, ", ")));
  }
  if (complaints.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ranks' configurations differ: ", absl::StrJoin(complaints, "; "),
      ". Give all ranks the same hvdlite::Config and the same HVDLITE_* "
      "variables (mpirun -x NAME passes one on)"));
}

absl::StatusOr<AllreduceTable> ReadAllreduceTable(Communicator& communicator,
                                                  const std::string& path) {
  if (path.empty()) return AllreduceTable::BuiltIn();
  std::string text;
  std::string problem;
  if (communicator.rank() == 0) {
    absl::StatusOr<std::string> read = base::ReadFile(path);
    if (read.ok()) {
      text = *std::move(read);
    } else {
      problem =
          absl::StrCat("rank 0 cannot read it: ", read.status().message());
    }
  }
  HVDLITE_RETURN_IF_ERROR(BroadcastText(communicator, 0, problem));
  HVDLITE_RETURN_IF_ERROR(BroadcastText(communicator, 0, text));
  if (problem.empty()) {
    absl::StatusOr<AllreduceTable> table = AllreduceTable::Parse(text);
    if (table.ok()) return table;
    problem = std::string(table.status().message());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("HVDLITE_ALLREDUCE_TABLE=", path, ": ", problem));
}

absl::StatusOr<ClockOffset> MeasureClockOffset(
    Communicator& communicator, const collective::Topology& topology,
    const base::Clock& clock) {
  constexpr int kRounds = 8;
  if (topology.size == 1) return ClockOffset();
  HVDLITE_RETURN_IF_ERROR(communicator.Barrier());
  int64_t lower = std::numeric_limits<int64_t>::min();
  int64_t upper = std::numeric_limits<int64_t>::max();
  int64_t narrowest = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < kRounds; ++round) {
    // Rank 0 reads its clock after `before` of every rank, and every rank has
    // the value at `after`.
    const int64_t before = clock.NowNanos();
    std::vector<int32_t> together = {0};
    HVDLITE_RETURN_IF_ERROR(communicator.Allreduce(
        BytesOf(together), DataType::kInt32, ReduceOp::kSum));
    std::vector<int64_t> reading = {clock.NowNanos()};
    HVDLITE_RETURN_IF_ERROR(
        communicator.Broadcast(BytesOf(reading), /*root=*/0));
    const int64_t after = clock.NowNanos();
    if (after - before < narrowest) {
      narrowest = after - before;
      lower = reading.front() - after;
      upper = reading.front() - before;
    }
  }
  const bool shares_clock_with_root =
      topology.cross_rank_of_rank[static_cast<size_t>(topology.rank)] ==
      topology.cross_rank_of_rank.front();
  if (shares_clock_with_root) return ClockOffset();
  const int64_t half = (upper - lower) / 2;
  return ClockOffset{.offset_ns = lower + half, .uncertainty_ns = half};
}

}  // namespace hvdlite::internal
