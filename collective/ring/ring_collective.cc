#include "collective/ring/ring_collective.h"

#include <algorithm>
#include <optional>

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

RingCollective::RingCollective(PointToPoint& messages, int rank, int size,
                               const SegmentOptions& options)
    : messages_(messages),
      rank_(rank),
      size_(size),
      window_(static_cast<int64_t>(options.window)),
      segment_bytes_(options.segment_bytes),
      sends_(messages, options.window),
      receives_(messages, options.window) {}

void RingCollective::BeginAllreduce(int tag, absl::Span<std::byte> buffer,
                                    DataType dtype, ReduceOp op) {
  const auto ranks = static_cast<size_t>(size_);
  const size_t block = RoundedUp((buffer.size() + ranks - 1) / ranks);
  begins_.clear();
  for (size_t rank = 0; rank <= ranks; ++rank) {
    begins_.push_back(std::min(rank * block, buffer.size()));
  }
  dtype_ = dtype;
  op_ = op;
  Begin(tag, buffer, /*first_step=*/0, /*steps=*/2 * (size_ - 1));
}

void RingCollective::BeginReduceScatter(int tag, absl::Span<std::byte> buffer,
                                        absl::Span<const size_t> bytes_of_rank,
                                        DataType dtype, ReduceOp op) {
  begins_ = PartOffsets(bytes_of_rank);
  begins_.push_back(buffer.size());
  dtype_ = dtype;
  op_ = op;
  Begin(tag, buffer, /*first_step=*/0, /*steps=*/size_ - 1);
}

void RingCollective::BeginAllgather(int tag, absl::Span<std::byte> buffer,
                                    absl::Span<const size_t> bytes_of_rank) {
  begins_ = PartOffsets(bytes_of_rank);
  begins_.push_back(buffer.size());
  Begin(tag, buffer, /*first_step=*/size_ - 1, /*steps=*/size_ - 1);
}

// `begins_` is known.
void RingCollective::Begin(int tag, absl::Span<std::byte> buffer,
                           int64_t first_step, int64_t steps) {
  tag_ = tag;
  buffer_ = buffer;
  first_step_ = first_step;
  largest_ = 0;
  for (size_t block = 1; block < begins_.size(); ++block) {
    largest_ = std::max(largest_, begins_[block] - begins_[block - 1]);
  }
  segments_ =
      static_cast<int64_t>((largest_ + segment_bytes_ - 1) / segment_bytes_);
  items_ = steps * segments_;
  sends_.Restart();
  receives_.Restart();
  const size_t scratch =
      first_step == 0
          ? static_cast<size_t>(window_) * std::min(segment_bytes_, largest_)
          : 0;
  if (scratch_.size() < scratch) scratch_.resize(scratch);
}

absl::Span<std::byte> RingCollective::SegmentOf(int64_t block,
                                                int64_t item) const {
  const auto index = static_cast<size_t>((block % size_ + size_) % size_);
  const size_t begin =
      begins_[index] + static_cast<size_t>(item % segments_) * segment_bytes_;
  const size_t end = begins_[index + 1];
  if (begin >= end) return {};
  return buffer_.subspan(begin, std::min(segment_bytes_, end - begin));
}

// Step s of the reduce-scatter sends block rank - 1 - s, and takes in the one
// before that. So in the end each rank has reduced its own block, which it
// sends in the first step of the allgather.
absl::Span<std::byte> RingCollective::Sent(int64_t item) const {
  const int64_t step = step_of(item);
  return SegmentOf(
      gathers(item) ? rank_ - (step - (size_ - 1)) : rank_ - 1 - step, item);
}

absl::Span<std::byte> RingCollective::Received(int64_t item) const {
  const int64_t step = step_of(item);
  return SegmentOf(
      gathers(item) ? rank_ - 1 - (step - (size_ - 1)) : rank_ - 2 - step,
      item);
}

absl::Span<std::byte> RingCollective::ScratchOf(int64_t item, size_t bytes) {
  const size_t each = std::min(segment_bytes_, largest_);
  return absl::MakeSpan(scratch_).subspan(
      static_cast<size_t>(item % window_) * each, bytes);
}

absl::StatusOr<bool> RingCollective::EndReceives() {
  bool some = false;
  for (;; some = true) {
    const int64_t item = receives_.done();
    HVDLITE_ASSIGN_OR_RETURN(const bool ended, receives_.EndOldest());
    if (!ended) return some;
    const absl::Span<std::byte> into = Received(item);
    if (!gathers(item) && !into.empty()) {
      Reduce(op_, dtype_, ScratchOf(item, into.size()), into);
    }
  }
}

absl::StatusOr<bool> RingCollective::EndSends() {
  bool some = false;
  for (;; some = true) {
    HVDLITE_ASSIGN_OR_RETURN(const bool ended, sends_.EndOldest());
    if (!ended) return some;
  }
}

absl::StatusOr<bool> RingCollective::BeginReceives() {
  const auto previous = static_cast<int>((rank_ - 1 + size_) % size_);
  bool some = false;
  for (; receives_.begun() < items_ && !receives_.full(); some = true) {
    const int64_t item = receives_.begun();
    // In an allreduce a gathered segment overwrites one that has been sent.
    if (gathers(item) && first_step_ == 0 &&
        sends_.done() <= item - (size_ - 1) * segments_) {
      break;
    }
    const absl::Span<std::byte> into = Received(item);
    std::optional<PointToPoint::Id> message;
    if (!into.empty()) {
      HVDLITE_ASSIGN_OR_RETURN(
          message, messages_.Receive(
                       previous, tag_,
                       gathers(item) ? into : ScratchOf(item, into.size())));
    }
    receives_.Add(message);
  }
  return some;
}

absl::StatusOr<bool> RingCollective::BeginSends() {
  const auto next = static_cast<int>((rank_ + 1) % size_);
  bool some = false;
  for (; sends_.begun() < items_ && !sends_.full(); some = true) {
    const int64_t item = sends_.begun();
    // What is sent is this rank's own in the first step; in each other one it
    // came in in the step before.
    if (item >= segments_ && receives_.done() <= item - segments_) break;
    const absl::Span<std::byte> bytes = Sent(item);
    std::optional<PointToPoint::Id> message;
    if (!bytes.empty()) {
      HVDLITE_ASSIGN_OR_RETURN(message, messages_.Send(next, tag_, bytes));
    }
    sends_.Add(message);
  }
  return some;
}

absl::StatusOr<Headway> RingCollective::Advance() {
  HVDLITE_ASSIGN_OR_RETURN(const bool received, EndReceives());
  HVDLITE_ASSIGN_OR_RETURN(const bool sent, EndSends());
  HVDLITE_ASSIGN_OR_RETURN(const bool receives, BeginReceives());
  HVDLITE_ASSIGN_OR_RETURN(const bool sends, BeginSends());
  if (receives_.done() == items_ && sends_.done() == items_) {
    return Headway::kDone;
  }
  return received || sent || receives || sends ? Headway::kSome
                                               : Headway::kNone;
}

}  // namespace hvdlite::collective
