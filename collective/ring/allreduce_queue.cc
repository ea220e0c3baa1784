#include "collective/ring/allreduce_queue.h"

#include <utility>

#include "base/status_macros.h"

namespace hvdlite::collective {

AllreduceQueue::AllreduceQueue(PointToPoint& messages, int rank, int size,
                               int first_tag, const SegmentOptions& options)
    : first_tag_(first_tag) {
  for (size_t i = 0; i < kAtOnce; ++i) {
    rings_.push_back(
        std::make_unique<RingCollective>(messages, rank, size, options));
  }
  is_done_.resize(kAtOnce);
}

void AllreduceQueue::Begin(absl::Span<std::byte> buffer, DataType dtype,
                           ReduceOp op) {
  const size_t ring = begun_ % kAtOnce;
  is_done_[ring] = false;
  rings_[ring]->BeginAllreduce(first_tag_ + static_cast<int>(begun_ % kTags),
                               buffer, dtype, op);
  ++begun_;
}

absl::StatusOr<Headway> AllreduceQueue::Advance() {
  Headway headway = Headway::kNone;
  for (size_t one = done_; one < begun_; ++one) {
    const size_t ring = one % kAtOnce;
    if (is_done_[ring]) continue;
    HVDLITE_ASSIGN_OR_RETURN(const Headway of_ring, rings_[ring]->Advance());
    is_done_[ring] = of_ring == Headway::kDone;
    if (of_ring != Headway::kNone) headway = Headway::kSome;
  }
  if (!is_done_[done_ % kAtOnce]) return headway;
  ++done_;
  return Headway::kDone;
}

}  // namespace hvdlite::collective
