#include "collective/ring/point_to_point.h"

#include "base/status_macros.h"

namespace hvdlite::collective {

MessageWindow::MessageWindow(PointToPoint& messages, size_t window)
    : messages_(messages), ids_(window) {}

MessageWindow::~MessageWindow() {
  for (; done_ < begun_; ++done_) {
    if (at(done_).has_value()) messages_.Cancel(*at(done_));
  }
}

void MessageWindow::Add(std::optional<PointToPoint::Id> message) {
  at(begun_++) = message;
}

absl::StatusOr<bool> MessageWindow::EndOldest() {
  if (done_ == begun_) return false;
  if (at(done_).has_value()) {
    HVDLITE_ASSIGN_OR_RETURN(const bool done, messages_.Test(*at(done_)));
    if (!done) return false;
  }
  ++done_;
  return true;
}

}  // namespace hvdlite::collective
