// NodeMemory: memory that the ranks of one node share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/shm/shared_mapping.h"

namespace hvdlite::collective {

// A segment per rank, all of the same size, which every rank sees (at addresses
// of its own). Synchronisation is up to its users.
class NodeMemory {
 public:
  // Collective over `communicator`, for all its nodes at once. `node` are the
  // ranks that are thought to share memory with this one, ascending, itself
  // among them, and the same on all of them; whether they do is found out here.
  // Each rank reserves its own segment of `bytes` zeros, which so lies on its
  // own NUMA node, unless the node has too little memory for the segments of
  // all its ranks (see AvailableMemory for `file_system_root`). Errors, the
  // same on all ranks of `communicator`: Unavailable, naming one of them and
  // its reason; nothing is kept then. `communicator` is not needed afterwards.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(
      Communicator& communicator, absl::Span<const int> node, size_t bytes,
      const std::string& file_system_root = "/");

  // The same where all ranks of the communicator are on one node.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(Communicator& node,
                                                            size_t bytes);

  // Counted within the node.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(segments_.size()); }

  // That of `rank`; at least the `bytes` given to Create, page-aligned.
  absl::Span<std::byte> segment(int rank) const {
    return segments_[static_cast<size_t>(rank)]->bytes();
  }

 private:
  NodeMemory(int rank, std::vector<std::shared_ptr<SharedMapping>> segments)
      : rank_(rank), segments_(std::move(segments)) {}

  const int rank_;
  const std::vector<std::shared_ptr<SharedMapping>> segments_;
};

}  // namespace hvdlite::collective
