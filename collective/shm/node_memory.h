// NodeMemory: memory that the ranks of one node share.
#pragma once

#include <cstddef>
#include <memory>
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
  // Collective over `node`, whose ranks are thought to share memory; whether
  // they do is found out here. Each rank reserves its own segment of
  // `bytes` zeros, which so lies on its own NUMA node. Errors, the same on all
  // ranks: Unavailable, naming a rank (of `node`) and its reason. `node` is not
  // needed afterwards.
  static absl::StatusOr<std::unique_ptr<NodeMemory>> Create(Communicator& node,
                                                            size_t bytes);

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
