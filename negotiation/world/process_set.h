// The ranks that take part in an operation.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"

namespace hvdlite::internal {

// The list 0, 1, ..., size-1. It exists as long as the process.
const std::vector<int>& AllRanks(int size);

// The state of a ProcessSet that is not the set of all ranks.
struct ProcessSetState {
  negotiation::ProcessSetId id = 0;
  std::vector<int> ranks;      // global, ascending
  std::weak_ptr<World> world;  // that it was added to
  mutable std::atomic<bool> removed{false};
};

// The members of a process set, for the operations of a world.
struct Members {
  negotiation::ProcessSetId id = 0;
  absl::Span<const int> ranks;  // global, ascending; `state` owns them
  int rank = 0;                 // this process's, within `ranks`
  std::shared_ptr<const ProcessSetState> state;  // null: all ranks

  int size() const { return static_cast<int>(ranks.size()); }
  bool contains(int global_rank) const;
  // "ranks 0, 2 and 3 (process set 1)" or "the world's ranks 0 to 3".
  std::string Describe() const;
};

// The members of the process set with this state. FailedPrecondition, starting
// with `what`, if this process is not in the set, the set was removed, or it
// belongs to an earlier world.
absl::StatusOr<Members> MembersOf(
    const World& world, const std::shared_ptr<const ProcessSetState>& state,
    absl::string_view what);

// The name of an operation in the negotiation, where the names of all process
// sets share one name space: `name` for all ranks, otherwise
// "<name>@process_set.<id>".
std::string NameInSet(std::string name, negotiation::ProcessSetId id);
// InvalidArgument if a name given by the user looks like such a name.
absl::Status CheckName(const std::string& name, absl::string_view what);

}  // namespace hvdlite::internal
