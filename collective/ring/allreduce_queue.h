// AllreduceQueue: several allreduces of a ring at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "collective/ring/ring_collective.h"

namespace hvdlite::collective {

// They end in the order in which they were begun. One thread at a time.
class AllreduceQueue {
 public:
  static constexpr size_t kAtOnce = 4;

  // As RingCollective; references outlive it. Tags from `first_tag` to
  // `first_tag + kTags - 1` are its own.
  static constexpr int kTags = 64;
  AllreduceQueue(PointToPoint& messages, int rank, int size, int first_tag,
                 const SegmentOptions& options);

  size_t under_way() const { return begun_ - done_; }

  // At most kAtOnce are under way.
  void Begin(absl::Span<std::byte> buffer, DataType dtype, ReduceOp op);
  // As Communicator::AdvanceAllreduces.
  absl::StatusOr<Headway> Advance();

 private:
  const int first_tag_;
  std::vector<std::unique_ptr<RingCollective>> rings_;  // used in turn
  std::vector<bool> is_done_;                          // likewise
  size_t begun_ = 0;
  size_t done_ = 0;
};

}  // namespace hvdlite::collective
