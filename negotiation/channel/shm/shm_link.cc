#include "negotiation/channel/shm/shm_link.h"

#include <algorithm>
#include <cstring>

namespace hvdlite::negotiation {

// The first cell is published last: so everything that one call writes appears
// at once, and by a sequentially consistent store, on which the proofs in
// doorbell.h rest.
bool CellWriter::Write(absl::string_view message, size_t& offset) {
  CellRing::Cell* first = nullptr;
  uint64_t first_header = 0;
  bool whole = false;
  while (!whole && HasRoom()) {
    CellRing::Cell& cell = ring_.CellAt(position_);
    const size_t bytes =
        std::min(message.size() - offset, CellRing::kPayloadBytes);
    std::memcpy(cell.payload, message.data() + offset, bytes);
    offset += bytes;
    whole = offset == message.size();
    const uint64_t header = uint64_t{ring_.TurnAt(position_)}
                                << CellRing::kTurnShift |
                            (whole ? 0 : CellRing::kMoreFollows) | bytes;
    ++position_;
    if (first == nullptr) {
      first = &cell;
      first_header = header;
    } else {
      cell.header.store(header, std::memory_order_release);
    }
  }
  if (first != nullptr) {
    first->header.store(first_header, std::memory_order_seq_cst);
  }
  return whole;
}

bool CellReader::Read(std::string& message) {
  while (true) {
    const CellRing::Cell& cell = ring_.CellAt(position_);
    const uint64_t header = cell.header.load(std::memory_order_acquire);
    if (Turn(header) != ring_.TurnAt(position_)) return false;
    const size_t bytes = header & (CellRing::kMoreFollows - 1);
    message.append(reinterpret_cast<const char*>(cell.payload), bytes);
    ++position_;
    // Not every time: it costs a cache miss on either side. A writer that finds
    // the ring full has all its cells ahead of what it was told last, so that
    // it is told something before the reader has taken them all.
    if (position_ - told_ >= ring_.num_cells_ / 4) TellTaken();
    if ((header & CellRing::kMoreFollows) == 0) return true;
  }
}

void CellReader::TellTaken() {
  told_ = position_;
  ring_.gauge_->taken.store(told_, std::memory_order_seq_cst);
  if (ring_.gauge_->writer_waits.load(std::memory_order_seq_cst) == 0) return;
  ring_.gauge_->writer_waits.store(0, std::memory_order_seq_cst);
  room_awaited_ = true;
}

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
