// Messages between ranks, many of them under way at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

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
  // Gives a message up. Where that is not possible any more, its memory is used
  // until it has come.
  virtual void Cancel(Id id) = 0;
  // Messages that were begun, and not tested to the end or given up.
  virtual size_t under_way() const = 0;
};

struct SegmentOptions {
  // What one message carries, a multiple of 64. Best is the largest that the
  // transport sends at once, without asking the receiver: an answer would stand
  // behind the bytes that flow the other way.
  size_t segment_bytes = 60 << 10;
  // Messages in each direction that are under way.
  size_t window = 8;
};

// The messages of one direction, in the order in which they were begun.
class MessageWindow {
 public:
  // References outlive it.
  MessageWindow(PointToPoint& messages, size_t window);
  // Gives up those that are under way.
  ~MessageWindow();
  MessageWindow(const MessageWindow&) = delete;
  MessageWindow& operator=(const MessageWindow&) = delete;

  // Counted since the last Restart.
  int64_t begun() const { return begun_; }
  int64_t done() const { return done_; }
  bool full() const { return under_way() == ids_.size(); }

  // Not full. nullopt: one without bytes, which needs no message.
  void Add(std::optional<PointToPoint::Id> message);
  // Whether the oldest one is done, and counted as that now. Errors: as
  // PointToPoint::Test.
  absl::StatusOr<bool> EndOldest();
  // None is under way.
  void Restart() { begun_ = done_ = 0; }

 private:
  size_t under_way() const { return static_cast<size_t>(begun_ - done_); }
  std::optional<PointToPoint::Id>& at(int64_t message) {
    return ids_[static_cast<size_t>(message) % ids_.size()];
  }

  PointToPoint& messages_;
  std::vector<std::optional<PointToPoint::Id>> ids_;  // a ring
  int64_t begun_ = 0;
  int64_t done_ = 0;
};

}  // namespace hvdlite::collective
