// SegmentedExchange: two ranks swap bytes, with the link busy in both
// directions.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/ring/point_to_point.h"

namespace hvdlite::collective {

// Sends to one rank and receives from one, which may be the same, in segments.
// What is sent has the size of what its receiver takes, also none. One thread
// at a time.
class SegmentedExchange {
 public:
  // References outlive it. One that is not done when it is destroyed gives its
  // messages up.
  SegmentedExchange(PointToPoint& messages, const SegmentOptions& options);

  // The next one; the one before is done.
  void Begin(int tag, int to, absl::Span<const std::byte> send, int from,
             absl::Span<std::byte> receive);

  // As RingCollective::Advance.
  absl::StatusOr<Headway> Advance();

 private:
  PointToPoint& messages_;
  const size_t segment_bytes_;
  int tag_ = 0;
  int to_ = 0;
  int from_ = 0;
  absl::Span<const std::byte> send_;  // what is left to begin
  absl::Span<std::byte> receive_;     // likewise
  MessageWindow sends_;
  MessageWindow receives_;
};

}  // namespace hvdlite::collective
