#include "collective/shm/node_memory.h"

#include <type_traits>
#include <utility>

#include "base/status_macros.h"
#include "collective/agreement.h"

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

}  // namespace

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
