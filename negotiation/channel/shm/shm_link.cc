#include "negotiation/channel/shm/shm_link.h"

namespace hvdlite::negotiation {

bool ShmLink::Send(std::string message, uint64_t number) {
  if (!done()) {
    waiting_.push_back({std::move(message), number});
    return false;
  }
  size_t written = 0;
  const bool whole = writer_.Write(message, written);
  if (written > 0 || whole) doorbell_.Press();
  if (whole) return true;
  waiting_.push_back({std::move(message), number});
  written_ = written;
  return false;
}

bool ShmLink::PushOn() {
  bool wrote = false;
  while (!done()) {
    const size_t before = written_;
    const bool whole = writer_.Write(waiting_.front().bytes, written_);
    wrote = wrote || whole || written_ > before;
    if (!whole) break;
    waiting_.pop_front();
    written_ = 0;
  }
  if (wrote) doorbell_.Press();
  return done();
}

bool ShmLink::Receive(std::string& message) {
  const bool whole = reader_.Read(arriving_);
  if (reader_.TakeRoomAwaited()) doorbell_.Press();
  if (whole) {
    message = std::move(arriving_);
    arriving_.clear();
  }
  return whole;
}

}  // namespace hvdlite::negotiation
