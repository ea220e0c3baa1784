// ShmLink: what a rank has to do with one other rank of its node. CellRing
// carries messages from one rank to another through shared memory, Doorbell
// wakes a rank that sleeps, at no cost while it is awake, and DeathWatch learns
// that processes of this node have ended.
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

// A ring of cells of 64 bytes in memory that both ranks see; zeros are an empty
// ring. A message takes as many cells as it needs, and may be longer than the
// ring. A short one takes one cell: the reader, which looks at the header of
// the next cell, finds header and bytes on one cache line.
//
// The header of a cell tells in which turn of the ring it was written; so a
// cell becomes readable by one store, and nobody has to clean up. The reader
// tells the writer now and then how many cells it has taken.
class CellRing {
 public:
  static constexpr size_t kPayloadBytes = 56;

  // What a ring of that many cells, a power of two from 4 on, takes of memory.
  static constexpr size_t Bytes(size_t cells) {
    return sizeof(Gauge) + cells * sizeof(Cell);
  }

  // The ring in `memory`, which is a multiple of 64 bytes away from a page
  // boundary and has the size that Bytes() tells.
  explicit CellRing(absl::Span<std::byte> memory)
      : gauge_(reinterpret_cast<Gauge*>(memory.data())),
        cells_(reinterpret_cast<Cell*>(memory.data() + sizeof(Gauge))),
        num_cells_((memory.size() - sizeof(Gauge)) / sizeof(Cell)) {}

 private:
  friend class CellWriter;
  friend class CellReader;

  struct Cell {
    // The turn (1, 2, ...), whether more cells of the message follow, and how
    // many bytes of it are here.
    std::atomic<uint64_t> header;
    std::byte payload[kPayloadBytes];
  };
  // Apart from the cells: some processors have cache lines of 256 bytes.
  struct Gauge {
    std::atomic<uint64_t> taken;         // cells, by the reader
    std::atomic<uint32_t> writer_waits;  // for the reader to take some
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

// The sending end. One thread at a time.
class CellWriter {
 public:
  explicit CellWriter(CellRing ring) : ring_(ring) {}

  // Writes as much of `message`, of which `offset` bytes are written already,
  // as there is room for, and moves `offset`. True once all of it is written.
  bool Write(absl::string_view message, size_t& offset);

  // Whether Write has room.
  bool HasRoom() {
    if (position_ - taken_ < ring_.num_cells_) return true;
    taken_ = ring_.gauge_->taken.load(std::memory_order_seq_cst);
    return position_ - taken_ < ring_.num_cells_;
  }

  // Asks the reader to say when there is room. Look at HasRoom afterwards: what
  // the reader took before it saw this is not announced.
  void AwaitRoom() {
    ring_.gauge_->writer_waits.store(1, std::memory_order_seq_cst);
  }

 private:
  const CellRing ring_;
  uint64_t position_ = 0;  // where the next cell goes
  uint64_t taken_ = 0;     // as last looked up
};

// The receiving end. One thread at a time.
class CellReader {
 public:
  explicit CellReader(CellRing ring) : ring_(ring) {}

  // Appends what has arrived to `message`. True once all of it is there.
  bool Read(std::string& message);

  // Whether Read has something to append.
  bool HasCells() const {
    return Turn(ring_.CellAt(position_).header.load(
               std::memory_order_seq_cst)) == ring_.TurnAt(position_);
  }

  // True if the writer has asked for room, and Read has made some: once.
  bool TakeRoomAwaited() { return std::exchange(room_awaited_, false); }

 private:
  static uint32_t Turn(uint64_t header) {
    return static_cast<uint32_t>(header >> CellRing::kTurnShift);
  }
  void TellTaken();

  const CellRing ring_;
  uint64_t position_ = 0;  // of the next cell
  uint64_t told_ = 0;      // cells taken, as the writer knows
  bool room_awaited_ = false;
};

// What a rank and those who wake it share; it lies in memory that all of them
// see, and begins with zeros.
struct DoorbellPlace {
  std::atomic<uint32_t> armed;
  // Where to ring: a pipe.
  int32_t process;
  int32_t descriptor;
  uint64_t inode;
};

// The rank's own end. One thread at a time, but for descriptor().
//
// Why no wake-up gets lost: a sleeper arms the doorbell and then looks once
// more for what it waits for; others do that and then press the button. All
// four steps are sequentially consistent, so that they have one order: either
// Press comes after Arm, and finds the doorbell armed (or taken by somebody
// else, who then writes to the pipe), or what was done before Press also comes
// before Arm, and the last look finds it.
class Doorbell {
 public:
  // Fills `place`, which outlives the doorbell. Errors: ResourceExhausted when
  // there are no descriptors left.
  static absl::StatusOr<std::unique_ptr<Doorbell>> Create(DoorbellPlace& place);

  // Becomes readable when somebody presses while it is armed.
  int descriptor() const { return pipe_.reader.get(); }

  // From now on until Disarm. Look again after this and before sleeping.
  void Arm();

  enum class State { kNotArmed, kNotRung, kRung };
  // Tells what it was, and makes the descriptor unreadable. A byte that is
  // still on its way may wake the next sleeper for nothing, once.
  State Disarm();

 private:
  Doorbell(DoorbellPlace& place, base::Pipe pipe);

  DoorbellPlace& place_;
  const base::Pipe pipe_;  // both ends, so that it never looks hung up
  bool armed_ = false;
  int64_t bytes_to_come_ = 0;  // a presser each has promised
};

// The other ranks' end; one thread at a time each. Pressing it when the rank is
// gone does nothing.
class DoorbellButton {
 public:
  // `place` outlives the button. Errors: Unavailable when the pipe of another
  // process cannot be reached, or is not what `place` says.
  static absl::StatusOr<DoorbellButton> Attach(DoorbellPlace& place);

  // After what the rank may wait for.
  void Press();

 private:
  DoorbellButton(DoorbellPlace& place, base::Descriptor pipe)
      : place_(&place), pipe_(std::move(pipe)) {}
  void Ring();

  DoorbellPlace* place_;
  base::Descriptor pipe_;
};

// One thread at a time.
class ShmLink {
 public:
  ShmLink(CellRing to_peer, CellRing from_peer, DoorbellButton peers_doorbell)
      : writer_(to_peer),
        reader_(from_peer),
        doorbell_(std::move(peers_doorbell)) {}

  // Hands the message to the peer, or as much of it as there is room for; the
  // rest waits for PushOn. True: all of it. `number`: see first_waiting().
  bool Send(std::string message, uint64_t number);

  // Hands over what has waited. True: nothing waits any more.
  bool PushOn();

  // Whether the peer has all that was sent.
  bool done() const { return waiting_.empty(); }
  size_t num_waiting() const { return waiting_.size(); }
  // The number of the first message that the peer does not have wholly.
  uint64_t first_waiting() const { return waiting_.front().number; }

  // The next message, if it has arrived whole.
  bool Receive(std::string& message);

  // Before going to sleep: the doorbell rings when the peer has made room for
  // what waits.
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
  size_t written_ = 0;    // bytes of the first one
  std::string arriving_;  // what has arrived of the next message
};

// Learns that processes of this node have ended. One thread at a time, but for
// descriptor().
class DeathWatch {
 public:
  // Watches `processes`, which are alive; this process itself is left out, and
  // so is everything where the system does not offer it (Linux before 5.3, some
  // sandboxes). Errors: ResourceExhausted when there are no descriptors left,
  // Unavailable if a process has ended already.
  static absl::StatusOr<std::unique_ptr<DeathWatch>> Create(
      absl::Span<const pid_t> processes);

  // Readable while Next() has something.
  int descriptor() const { return epoll_.get(); }

  // The index of a process that has ended, each once.
  std::optional<size_t> Next();

 private:
  explicit DeathWatch(base::Descriptor epoll) : epoll_(std::move(epoll)) {}
  absl::Status Add(size_t index, pid_t process);

  const base::Descriptor epoll_;
  std::vector<base::Descriptor> processes_;  // by index
};

}  // namespace hvdlite::negotiation
