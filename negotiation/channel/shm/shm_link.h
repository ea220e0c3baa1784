// ShmLink is the connection of a rank to one other rank of its node. CellRing
// carries messages from one rank to another through shared memory. Doorbell
// wakes a sleeping rank, and costs nothing while the rank is awake. DeathWatch
// detects that processes of this node have ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/descriptor.h"

namespace hvdlite::negotiation {

// A ring of 64-byte cells in memory that both ranks see. Memory filled with
// zeros is an empty ring. A message takes as many cells as it needs, and may be
// longer than the ring. A short message takes one cell: the reader finds its
// header and its bytes on one cache line.
//
// The header of a cell contains the turn of the ring in which it was written.
// So one store makes a cell readable, and no rank has to clear cells. From time
// to time the reader stores how many cells it has taken.
class CellRing {
 public:
  static constexpr size_t kPayloadBytes = 56;

  // The memory that a ring with this many cells needs. `cells`: a power of two,
  // at least 4.
  static constexpr size_t Bytes(size_t cells) {
    return sizeof(Gauge) + cells * sizeof(Cell);
  }

  // Uses the ring in `memory`, which has Bytes() bytes and is aligned to 64
  // bytes.
  explicit CellRing(absl::Span<std::byte> memory)
      : gauge_(reinterpret_cast<Gauge*>(memory.data())),
        cells_(reinterpret_cast<Cell*>(memory.data() + sizeof(Gauge))),
        num_cells_((memory.size() - sizeof(Gauge)) / sizeof(Cell)) {}

 private:
  friend class CellWriter;
  friend class CellReader;

  struct Cell {
    // The turn (1, 2, ...), whether more cells of the message follow, and the
    // number of bytes of the message in this cell.
    std::atomic<uint64_t> header;
    std::byte payload[kPayloadBytes];
  };
  // They are apart from the cells: some processors have cache lines of 256
  // bytes.
  struct Gauge {
    std::atomic<uint64_t> taken;         // cells taken by the reader
    std::atomic<uint32_t> writer_waits;  // the writer waits for room
    std::byte unused[256 - 16];
  };
  static_assert(sizeof(Cell) == 64 && sizeof(Gauge) == 256);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  static constexpr int kTurnShift = 32;
  static constexpr uint64_t kMoreFollows = uint64_t{1} << 31;

  uint32_t TurnAt(uint64_t position) const {
    return static_cast<uint32_t>(position / num_cells_ + 1);
  }
  Cell& CellAt(uint64_t position) const {
    return cells_[position & (num_cells_ - 1)];
  }

  Gauge* gauge_;
  Cell* cells_;
  size_t num_cells_;
};

// The sending end. One thread at a time may use it.
class CellWriter {
 public:
  explicit CellWriter(CellRing ring) : ring_(ring) {}

  // Writes as much of `message` as there is room for, from `offset` on, and
  // moves `offset`. Returns true once the whole message is written.
  bool Write(absl::string_view message, size_t& offset);

  // Whether Write has room for a cell.
  bool HasRoom() {
    if (position_ - taken_ < ring_.num_cells_) return true;
    taken_ = ring_.gauge_->taken.load(std::memory_order_seq_cst);
    return position_ - taken_ < ring_.num_cells_;
  }

  // Asks the reader to ring when there is room. Call HasRoom afterwards: the
  // reader does not ring for cells that it took before it saw this request.
  void AwaitRoom() {
    ring_.gauge_->writer_waits.store(1, std::memory_order_seq_cst);
  }

 private:
  const CellRing ring_;
  uint64_t position_ = 0;  // where the next cell goes
  uint64_t taken_ = 0;     // as last read
};

// The receiving end. One thread at a time may use it.
class CellReader {
 public:
  explicit CellReader(CellRing ring) : ring_(ring) {}

  // Appends what has arrived to `message`. Returns true once the message is
  // complete.
  bool Read(std::string& message);

  // Whether Read has something to append.
  bool HasCells() const {
    return Turn(ring_.CellAt(position_).header.load(
               std::memory_order_seq_cst)) == ring_.TurnAt(position_);
  }

  // True, once, if the writer has asked for room and Read has made some.
  bool TakeRoomAwaited() { return std::exchange(room_awaited_, false); }

 private:
  static uint32_t Turn(uint64_t header) {
    return static_cast<uint32_t>(header >> CellRing::kTurnShift);
  }
  void TellTaken();

  const CellRing ring_;
  uint64_t position_ = 0;  // of the next cell
  uint64_t told_ = 0;      // taken cells that the writer knows of
  bool room_awaited_ = false;
};

// What a rank shares with the ranks that wake it. It lies in memory that all of
// them see, and initially contains zeros.
struct DoorbellPlace {
  std::atomic<uint32_t> armed;
  // The pipe that wakes the rank.
  int32_t process;
  int32_t descriptor;
  uint64_t inode;
};

// The rank's own end. One thread at a time may use it, except descriptor().
//
// No wake-up gets lost. A sleeper arms the doorbell, and then looks once more
// for what it waits for. The other rank makes its change, and then calls Press.
// All four steps are sequentially consistent, so they have one order. Either
// Press comes after Arm: then it finds the doorbell armed, or another presser
// has disarmed it and writes to the pipe. Or the change comes before Arm: then
// the last look finds it.
class Doorbell {
 public:
  // Fills `place`, which must outlive the doorbell. Errors: ResourceExhausted
  // if there are no descriptors left.
  static absl::StatusOr<std::unique_ptr<Doorbell>> Create(DoorbellPlace& place);

  // Becomes readable when a button is pressed while the doorbell is armed.
  int descriptor() const { return pipe_.reader.get(); }

  // Arms the doorbell until Disarm. Look again after this and before sleeping.
  void Arm();

  enum class State { kNotArmed, kNotRung, kRung };
  // Returns the state so far, and makes the descriptor unreadable. A byte that
  // is still on its way may wake the next sleeper for nothing, once.
  State Disarm();

 private:
  Doorbell(DoorbellPlace& place, base::Pipe pipe);

  DoorbellPlace& place_;
  const base::Pipe pipe_;  // both ends, so that it is never hung up
  bool armed_ = false;
  int64_t bytes_to_come_ = 0;  // each promised by a presser
};

// The other ranks' end; one thread at a time may use each button. Pressing does
// nothing if the rank is gone.
class DoorbellButton {
 public:
  // `place` must outlive the button. Errors: Unavailable if the pipe of the
  // other process cannot be opened, or is not the one that `place` describes.
  static absl::StatusOr<DoorbellButton> Attach(DoorbellPlace& place);

  // Call this after the change that the rank may wait for.
  void Press();

 private:
  DoorbellButton(DoorbellPlace& place, base::Descriptor pipe)
      : place_(&place), pipe_(std::move(pipe)) {}
  void Ring();

  DoorbellPlace* place_;
  base::Descriptor pipe_;
};

// The connection to one other rank. One thread at a time may use it.
class ShmLink {
 public:
  ShmLink(CellRing to_peer, CellRing from_peer, DoorbellButton peers_doorbell)
      : writer_(to_peer),
        reader_(from_peer),
        doorbell_(std::move(peers_doorbell)) {}

  // Sends the message, or as much of it as there is room for; PushOn sends the
  // rest. Returns true if all of it was sent. `number`: see first_waiting().
  bool Send(std::string message, uint64_t number);

  // Sends more of the waiting messages. Returns true if nothing waits any more.
  bool PushOn();

  // Whether the peer has received everything.
  bool done() const { return waiting_.empty(); }
  size_t num_waiting() const { return waiting_.size(); }
  // The number of the first message that the peer has not received completely.
  uint64_t first_waiting() const { return waiting_.front().number; }

  // Returns the next message if it has arrived completely.
  bool Receive(std::string& message);

  // Call this before sleeping: the doorbell then rings when the peer has made
  // room for waiting messages.
  void AwaitRoom() { writer_.AwaitRoom(); }

  bool CanPushOn() { return !done() && writer_.HasRoom(); }
  bool CanReceive() const { return reader_.HasCells(); }

 private:
  CellWriter writer_;
  CellReader reader_;
  DoorbellButton doorbell_;
  struct Waiting {
    std::string bytes;
    uint64_t number = 0;
  };
  std::deque<Waiting> waiting_;
  size_t written_ = 0;    // bytes of the first message
  std::string arriving_;  // what has arrived of the next message
};

// Detects that processes of this node have ended. One thread at a time may use
// it, except descriptor().
class DeathWatch {
 public:
  // Watches `processes`, which must be alive, except this process itself. It
  // watches nothing if the system does not support this (Linux before 5.3, some
  // sandboxes). Errors: ResourceExhausted if there are no descriptors left;
  // Unavailable if a process has already ended.
  static absl::StatusOr<std::unique_ptr<DeathWatch>> Create(
      absl::Span<const pid_t> processes);

  // Readable while Next() returns an index.
  int descriptor() const { return epoll_.get(); }

  // Returns the index of a process that has ended, once for each process.
  std::optional<size_t> Next();

 private:
  explicit DeathWatch(base::Descriptor epoll) : epoll_(std::move(epoll)) {}
  absl::Status Add(size_t index, pid_t process);

  const base::Descriptor epoll_;
  std::vector<base::Descriptor> processes_;  // by index
};

}  // namespace hvdlite::negotiation
