#include "collective/shm/node_memory.h"

#include <numeric>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/shm/available_memory.h"

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

// All ranks of the node reserve at the same time.
absl::StatusOr<std::shared_ptr<SharedMapping>> ReserveSegment(
    size_t bytes, size_t num_ranks, const std::string& file_system_root) {
  const size_t available = AvailableMemory(file_system_root);
  if (bytes > available / num_ranks) {
    return absl::ResourceExhaustedError(
        absl::StrCat(num_ranks, " ranks want ", bytes,
                     " bytes of shared memory each, but only ", available,
                     " bytes of memory are available to them"));
  }
  return SharedMapping::Create(bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeMemory>> NodeMemory::Create(
    Communicator& communicator, absl::Span<const int> node, size_t bytes,
    const std::string& file_system_root) {
  absl::StatusOr<std::shared_ptr<SharedMapping>> own =
      ReserveSegment(bytes, node.size(), file_system_root);
  HVDLITE_RETURN_IF_ERROR(AgreeOn(communicator, own.status()));
  HVDLITE_ASSIGN_OR_RETURN(const auto addresses,
                           GatherFromAll(communicator, (*own)->address()));
  int place = 0;
  std::vector<std::shared_ptr<SharedMapping>> segments;
  absl::Status attached;
  for (const int rank : node) {
    const bool is_own = rank == communicator.rank();
    if (is_own) place = static_cast<int>(segments.size());
    absl::StatusOr<std::shared_ptr<SharedMapping>> segment =
        is_own ? std::move(own)
               : SharedMapping::Attach(addresses[static_cast<size_t>(rank)]);
    attached = segment.status();
    if (!attached.ok()) break;
    segments.push_back(*std::move(segment));
  }
  // Also keeps every rank here until all have attached.
  HVDLITE_RETURN_IF_ERROR(AgreeOn(communicator, attached));
  return std::unique_ptr<NodeMemory>(
      new NodeMemory(place, std::move(segments)));
}

absl::StatusOr<std::unique_ptr<NodeMemory>> NodeMemory::Create(
    Communicator& node, size_t bytes) {
  std::vector<int> all(static_cast<size_t>(node.size()));
  std::iota(all.begin(), all.end(), 0);
  return Create(node, all, bytes);
}

}  // namespace hvdlite::collective
