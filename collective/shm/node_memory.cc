#include "collective/shm/node_memory.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

// Each rank's `mine`, by rank.
template <typename T>
absl::StatusOr<std::vector<T>> GatherFromAll(Communicator& communicator,
                                             const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(communicator.size()));
  all[static_cast<size_t>(communicator.rank())] = mine;
  const std::vector<size_t> bytes(all.size(), sizeof(T));
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      absl::MakeSpan(reinterpret_cast<std::byte*>(all.data()),
                     all.size() * sizeof(T)),
      bytes));
  return all;
}

// What went wrong, in a form that can be sent.
struct Outcome {
  uint8_t ok = 1;
  char reason[255] = {};
};

}  // namespace

absl::Status AgreeOn(Communicator& communicator, const absl::Status& status) {
  Outcome mine;
  mine.ok = status.ok() ? 1 : 0;
  const std::string text(status.message());
  text.copy(mine.reason, sizeof(mine.reason) - 1);
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Outcome> all,
                           GatherFromAll(communicator, mine));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].ok != 0) continue;
    return absl::UnavailableError(
        absl::StrCat("rank ", rank, ": ", all[rank].reason));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<NodeMemory>> NodeMemory::Create(
    Communicator& node, size_t bytes) {
  absl::StatusOr<std::shared_ptr<SharedMapping>> own =
      SharedMapping::Create(bytes);
  HVDLITE_RETURN_IF_ERROR(AgreeOn(node, own.status()));
  HVDLITE_ASSIGN_OR_RETURN(const auto addresses,
                           GatherFromAll(node, (*own)->address()));
  std::vector<std::shared_ptr<SharedMapping>> segments;
  absl::Status attached;
  for (int rank = 0; rank < node.size() && attached.ok(); ++rank) {
    absl::StatusOr<std::shared_ptr<SharedMapping>> segment =
        rank == node.rank()
            ? std::move(own)
            : SharedMapping::Attach(addresses[static_cast<size_t>(rank)]);
    attached = segment.status();
    if (attached.ok()) segments.push_back(*std::move(segment));
  }
  // Also keeps every rank here until all have attached.
  HVDLITE_RETURN_IF_ERROR(AgreeOn(node, attached));
  return std::unique_ptr<NodeMemory>(
      new NodeMemory(node.rank(), std::move(segments)));
}

}  // namespace hvdlite::collective
