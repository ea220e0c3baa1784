#include "collective/ring/ring_allreduce.h"

#include <algorithm>

#include "base/status_macros.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {
namespace {

// Blocks begin at whole cache lines, which hold whole elements.
constexpr size_t kBlockUnit = 64;

size_t RoundedUp(size_t bytes) {
  return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit;
}

}  // namespace

RingAllreduce::RingAllreduce(PointToPoint& messages, int rank, int size,
                             const RingOptions& options)
    : messages_(messages),
      rank_(rank),
      size_(size),
      window_(static_cast<int64_t>(options.window)),
      segment_bytes_(RoundedUp(options.segment_bytes)) {
  for (Direction* const direction : {&sends_, &receives_}) {
    direction->ids.resize(options.window);
    direction->empty.resize(options.window);
  }
}

void RingAllreduce::Begin(int tag, absl::Span<std::byte> buffer, DataType dtype,
                          ReduceOp op) {
  tag_ = tag;
  buffer_ = buffer;
  dtype_ = dtype;
  op_ = op;
  const auto ranks = static_cast<size_t>(size_);
  block_bytes_ = RoundedUp((buffer.size() + ranks - 1) / ranks);
  segments_ = static_cast<int64_t>((block_bytes_ + segment_bytes_ - 1) /
                                   segment_bytes_);
  items_ = 2 * (size_ - 1) * segments_;
  for (Direction* const direction : {&sends_, &receives_}) {
    direction->begun = 0;
    direction->done = 0;
  }
  const size_t scratch =
      static_cast<size_t>(window_) * std::min(segment_bytes_, block_bytes_);
  if (scratch_.size() < scratch) scratch_.resize(scratch);
}

RingAllreduce::~RingAllreduce() {
  for (Direction* const direction : {&sends_, &receives_}) {
    for (int64_t item = direction->done; item < direction->begun; ++item) {
      const auto at = static_cast<size_t>(item % window_);
      if (!direction->empty[at]) messages_.Cancel(direction->ids[at]);
    }
  }
}

absl::Span<std::byte> RingAllreduce::SegmentOf(int64_t block,
                                               int64_t item) const {
  const auto index = static_cast<size_t>((block % size_ + size_) % size_);
  const size_t end = std::min((index + 1) * block_bytes_, buffer_.size());
  const size_t begin = index * block_bytes_ +
                       static_cast<size_t>(item % segments_) * segment_bytes_;
  if (begin >= end) return {};
  return buffer_.subspan(begin, std::min(segment_bytes_, end - begin));
}

// Step s of the reduce-scatter sends block rank - s, and takes in the one
// before that. So in the end each rank has reduced block rank + 1, which it
// sends in the first step of the allgather.
absl::Span<std::byte> RingAllreduce::Sent(int64_t item) const {
  const int64_t step = step_of(item);
  return SegmentOf(
      gathers(item) ? rank_ + 1 - (step - (size_ - 1)) : rank_ - step, item);
}

absl::Span<std::byte> RingAllreduce::Received(int64_t item) const {
  const int64_t step = step_of(item);
  return SegmentOf(
      gathers(item) ? rank_ - (step - (size_ - 1)) : rank_ - step - 1, item);
}

absl::Span<std::byte> RingAllreduce::ScratchOf(int64_t item, size_t bytes) {
  const size_t each = std::min(segment_bytes_, block_bytes_);
  return absl::MakeSpan(scratch_).subspan(
      static_cast<size_t>(item % window_) * each, bytes);
}

absl::StatusOr<bool> RingAllreduce::EndReceives() {
  bool some = false;
  for (; receives_.under_way() > 0; some = true) {
    const int64_t item = receives_.done;
    const auto at = static_cast<size_t>(item % window_);
    if (!receives_.empty[at]) {
      HVDLITE_ASSIGN_OR_RETURN(const bool done,
                               messages_.Test(receives_.ids[at]));
      if (!done) break;
      if (!gathers(item)) {
        const absl::Span<std::byte> into = Received(item);
        Reduce(op_, dtype_, ScratchOf(item, into.size()), into);
      }
    }
    ++receives_.done;
  }
  return some;
}

absl::StatusOr<bool> RingAllreduce::EndSends() {
  bool some = false;
  for (; sends_.under_way() > 0; some = true) {
    const auto at = static_cast<size_t>(sends_.done % window_);
    if (!sends_.empty[at]) {
      HVDLITE_ASSIGN_OR_RETURN(const bool done, messages_.Test(sends_.ids[at]));
      if (!done) break;
    }
    ++sends_.done;
  }
  return some;
}

absl::StatusOr<bool> RingAllreduce::BeginReceives() {
  const auto previous = static_cast<int>((rank_ - 1 + size_) % size_);
  bool some = false;
  for (; receives_.begun < items_ && receives_.under_way() < window_;
       some = true) {
    const int64_t item = receives_.begun;
    // A gathered segment overwrites what the reduce-scatter has sent.
    if (gathers(item) && sends_.done <= item - (size_ - 1) * segments_) break;
    const absl::Span<std::byte> into = Received(item);
    const auto at = static_cast<size_t>(item % window_);
    receives_.empty[at] = into.empty();
    if (!into.empty()) {
      HVDLITE_ASSIGN_OR_RETURN(
          receives_.ids[at],
          messages_.Receive(
              previous, tag_,
              gathers(item) ? into : ScratchOf(item, into.size())));
    }
    ++receives_.begun;
  }
  return some;
}

absl::StatusOr<bool> RingAllreduce::BeginSends() {
  const auto next = static_cast<int>((rank_ + 1) % size_);
  bool some = false;
  for (; sends_.begun < items_ && sends_.under_way() < window_; some = true) {
    const int64_t item = sends_.begun;
    // What is sent is this rank's own in the first step; in each other one it
    // came in in the step before.
    if (item >= segments_ && receives_.done <= item - segments_) break;
    const absl::Span<std::byte> bytes = Sent(item);
    const auto at = static_cast<size_t>(item % window_);
    sends_.empty[at] = bytes.empty();
    if (!bytes.empty()) {
      HVDLITE_ASSIGN_OR_RETURN(sends_.ids[at],
                               messages_.Send(next, tag_, bytes));
    }
    ++sends_.begun;
  }
  return some;
}

absl::StatusOr<Headway> RingAllreduce::Advance() {
  HVDLITE_ASSIGN_OR_RETURN(const bool received, EndReceives());
  HVDLITE_ASSIGN_OR_RETURN(const bool sent, EndSends());
  HVDLITE_ASSIGN_OR_RETURN(const bool receives, BeginReceives());
  HVDLITE_ASSIGN_OR_RETURN(const bool sends, BeginSends());
  if (receives_.done == items_ && sends_.done == items_) return Headway::kDone;
  return received || sent || receives || sends ? Headway::kSome
                                               : Headway::kNone;
}

}  // namespace hvdlite::collective
