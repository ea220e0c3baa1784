// RingCollective: collectives that keep a link busy in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "collective/ring/point_to_point.h"

namespace hvdlite::collective {

// A reduce-scatter, an allgather, or both, which is an allreduce, around the
// ring of ranks. Each of n-1 steps (2 (n-1) of an allreduce) sends a block of
// the buffer to the next rank, and takes one from the previous rank, in
// segments. A segment goes on as soon as it has come in and was reduced, while
// others travel: so after the first segment the link is busy in both directions
// up to the last (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009). Every rank ends with the same bits.
//
// Several can be under way at a time, each with a tag of its own. One thread at
// a time.
class RingCollective {
 public:
  // References outlive it. `rank` of `size` ranks, 2 or more. One that is not
  // done when it is destroyed gives its messages up.
  RingCollective(PointToPoint& messages, int rank, int size,
                 const SegmentOptions& options);

  // The next one; the one before is done. The same arguments on all ranks, but
  // for the memory, which is aligned to elements. Parts are as those of
  // Communicator; a reduced part stays at its place.
  void BeginAllreduce(int tag, absl::Span<std::byte> buffer, DataType dtype,
                      ReduceOp op);
  void BeginReduceScatter(int tag, absl::Span<std::byte> buffer,
                          absl::Span<const size_t> bytes_of_rank,
                          DataType dtype, ReduceOp op);
  void BeginAllgather(int tag, absl::Span<std::byte> buffer,
                      absl::Span<const size_t> bytes_of_rank);

  // Carries it on without waiting; to be called again soon, until it is done.
  // Errors: those of the messages; it must not be called again then.
  absl::StatusOr<Headway> Advance();

 private:
  // The items of a direction are counted from 0: step by step, and by segment
  // within a step.
  int64_t step_of(int64_t item) const { return first_step_ + item / segments_; }
  bool gathers(int64_t item) const { return step_of(item) >= size_ - 1; }
  void Begin(int tag, absl::Span<std::byte> buffer, int64_t first_step,
             int64_t steps);
  absl::Span<std::byte> SegmentOf(int64_t block, int64_t item) const;
  absl::Span<std::byte> Sent(int64_t item) const;
  absl::Span<std::byte> Received(int64_t item) const;
  absl::Span<std::byte> ScratchOf(int64_t item, size_t bytes);

  absl::StatusOr<bool> EndReceives();
  absl::StatusOr<bool> EndSends();
  absl::StatusOr<bool> BeginReceives();
  absl::StatusOr<bool> BeginSends();

  PointToPoint& messages_;
  const int64_t rank_;
  const int64_t size_;
  const int64_t window_;
  const size_t segment_bytes_;
  int tag_ = 0;
  absl::Span<std::byte> buffer_;
  DataType dtype_ = DataType::kFloat32;
  ReduceOp op_ = ReduceOp::kSum;
  std::vector<size_t> begins_;  // of the ranks' blocks, and the end of the last
  int64_t first_step_ = 0;      // the allgather begins with step size_ - 1
  size_t largest_ = 0;          // block, in bytes
  int64_t segments_ = 0;        // of a block
  int64_t items_ = 0;           // of a direction
  std::vector<std::byte> scratch_;  // where what is to be reduced arrives
  // Destroyed before that.
  MessageWindow sends_;
  MessageWindow receives_;
};

}  // namespace hvdlite::collective
