// RingAllreduce: an allreduce that keeps a link busy in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Messages between the ranks of a communicator, which are under way while their
// ranks do other things.
class PointToPoint {
 public:
  // Of a message that is under way.
  using Id = size_t;

  virtual ~PointToPoint() = default;

  // Begins to send or to receive, in the order of the calls where rank and tag
  // are the same. The memory stays as it is until the message is done. Errors:
  // Unavailable when the transport broke.
  virtual absl::StatusOr<Id> Send(int to, int tag,
                                  absl::Span<const std::byte> bytes) = 0;
  virtual absl::StatusOr<Id> Receive(int from, int tag,
                                     absl::Span<std::byte> bytes) = 0;
  // Whether the message is done, and its Id forgotten. Does not wait. Errors:
  // as above.
  virtual absl::StatusOr<bool> Test(Id id) = 0;
  // Gives a message up: its memory is not used any more.
  virtual void Cancel(Id id) = 0;
};

struct RingOptions {
  // What one message carries. Best is the largest that the transport sends at
  // once, without asking the receiver: an answer would stand behind the bytes
  // that flow the other way.
  size_t segment_bytes = 60 << 10;
  // Messages in each direction that are under way.
  size_t window = 8;
};

// Allreduce of `buffer` in place, as Communicator::Allreduce; every rank ends
// with the same bits. Reduce-scatter, then allgather, around the ring of ranks,
// in segments: each of 2 (n-1) steps sends a block of the buffer, 1/n of it, to
// the next rank, and takes one from the previous rank. A segment goes on as
// soon as it has come in and was reduced, while others travel: so after the
// first segment the link is busy in both directions up to the last (Patarasuk
// and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009; segments as in pipelined trees).
//
// Several can be under way at a time, each with a tag of its own. One thread at
// a time.
class RingAllreduce {
 public:
  // References outlive it. `rank` of `size` ranks, 2 or more.
  RingAllreduce(PointToPoint& messages, int rank, int size,
                const RingOptions& options);
  // One that is not done gives its messages up.
  ~RingAllreduce();
  RingAllreduce(const RingAllreduce&) = delete;
  RingAllreduce& operator=(const RingAllreduce&) = delete;

  // The next one; the one before is done. The same arguments on all ranks, but
  // for the memory, which is aligned to elements.
  void Begin(int tag, absl::Span<std::byte> buffer, DataType dtype,
             ReduceOp op);

  // Carries it on without waiting; to be called again soon, until it is done.
  // Errors: those of the messages; it must not be called again then.
  absl::StatusOr<Headway> Advance();

 private:
  // Messages under way, in the order in which they were begun. A segment
  // without bytes has no message.
  struct Direction {
    int64_t begun = 0;
    int64_t done = 0;
    std::vector<PointToPoint::Id> ids;  // a ring, by number % window
    std::vector<bool> empty;            // likewise
    int64_t under_way() const { return begun - done; }
  };

  // The items of a direction are counted from 0: step by step, and by segment
  // within a step.
  int64_t step_of(int64_t item) const { return item / segments_; }
  bool gathers(int64_t item) const { return step_of(item) >= size_ - 1; }
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
  size_t block_bytes_ = 0;  // of all blocks but the last ones
  int64_t segments_ = 0;    // of a block
  int64_t items_ = 0;       // of a direction
  Direction sends_;
  Direction receives_;
  std::vector<std::byte> scratch_;  // where what is to be reduced arrives
};

}  // namespace hvdlite::collective
