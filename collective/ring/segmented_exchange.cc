#include "collective/ring/segmented_exchange.h"

#include <algorithm>

#include "base/status_macros.h"

namespace hvdlite::collective {

SegmentedExchange::SegmentedExchange(PointToPoint& messages,
                                     const SegmentOptions& options)
    : messages_(messages),
      segment_bytes_(options.segment_bytes),
      sends_(messages, options.window),
      receives_(messages, options.window) {}

void SegmentedExchange::Begin(int tag, int to, absl::Span<const std::byte> send,
                              int from, absl::Span<std::byte> receive) {
  tag_ = tag;
  to_ = to;
  from_ = from;
  send_ = send;
  receive_ = receive;
  sends_.Restart();
  receives_.Restart();
}

absl::StatusOr<Headway> SegmentedExchange::Advance() {
  Headway headway = Headway::kNone;
  for (MessageWindow* const window : {&receives_, &sends_}) {
    for (;; headway = Headway::kSome) {
      HVDLITE_ASSIGN_OR_RETURN(const bool ended, window->EndOldest());
      if (!ended) break;
    }
  }
  for (; !receive_.empty() && !receives_.full(); headway = Headway::kSome) {
    const size_t bytes = std::min(segment_bytes_, receive_.size());
    HVDLITE_ASSIGN_OR_RETURN(
        const PointToPoint::Id message,
        messages_.Receive(from_, tag_, receive_.first(bytes)));
    receives_.Add(message);
    receive_.remove_prefix(bytes);
  }
  for (; !send_.empty() && !sends_.full(); headway = Headway::kSome) {
    const size_t bytes = std::min(segment_bytes_, send_.size());
    HVDLITE_ASSIGN_OR_RETURN(const PointToPoint::Id message,
                             messages_.Send(to_, tag_, send_.first(bytes)));
    sends_.Add(message);
    send_.remove_prefix(bytes);
  }
  const bool done = send_.empty() && receive_.empty() &&
                    sends_.done() == sends_.begun() &&
                    receives_.done() == receives_.begun();
  return done ? Headway::kDone : headway;
}

}  // namespace hvdlite::collective
