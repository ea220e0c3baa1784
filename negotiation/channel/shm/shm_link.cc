#include "negotiation/channel/shm/shm_link.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434  // on all architectures
#endif

namespace hvdlite::negotiation {
namespace {

// Returns 0 if there is no inode.
uint64_t InodeOf(const base::Descriptor& descriptor) {
  struct stat status = {};
  if (fstat(descriptor.get(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_ino);
}

absl::Status OutOfDescriptors() {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot watch the processes of this node: ", std::strerror(errno),
      "; see ulimit -n"));
}

}  // namespace

// The first cell is published last, so everything that one call writes appears
// in one step. The store is sequentially consistent: the proof in Doorbell's
// comment needs this.
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
    // This is not done for every cell: it costs a cache miss on either side. A
    // writer that finds the ring full is informed before the reader has taken
    // all cells.
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

Doorbell::Doorbell(DoorbellPlace& place, base::Pipe pipe)
    : place_(place), pipe_(std::move(pipe)) {
  place_.process = getpid();
  place_.descriptor = pipe_.reader.get();
  place_.inode = InodeOf(pipe_.reader);
}

absl::StatusOr<std::unique_ptr<Doorbell>> Doorbell::Create(
    DoorbellPlace& place) {
  HVDLITE_ASSIGN_OR_RETURN(base::Pipe pipe, base::MakePipe(O_NONBLOCK));
  return std::unique_ptr<Doorbell>(new Doorbell(place, std::move(pipe)));
}

void Doorbell::Arm() {
  const bool was_armed = std::exchange(armed_, true);
  const bool still = place_.armed.exchange(1, std::memory_order_seq_cst) != 0;
  if (was_armed && !still) ++bytes_to_come_;
}

Doorbell::State Doorbell::Disarm() {
  State state = State::kNotArmed;
  if (std::exchange(armed_, false)) {
    const bool rung = place_.armed.exchange(0, std::memory_order_seq_cst) == 0;
    if (rung) ++bytes_to_come_;
    state = rung ? State::kRung : State::kNotRung;
  }
  if (bytes_to_come_ > 0) {
    char bytes[64];
    const ssize_t got = read(pipe_.reader.get(), bytes, sizeof bytes);
    if (got > 0) bytes_to_come_ -= got;
  }
  return state;
}

absl::StatusOr<DoorbellButton> DoorbellButton::Attach(DoorbellPlace& place) {
  const std::string path =
      absl::StrCat("/proc/", place.process, "/fd/", place.descriptor);
  // It is also opened for reading: writing to a pipe without readers raises
  // SIGPIPE.
  base::Descriptor pipe(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "cannot open ", path, ", a peer's doorbell: ", std::strerror(errno),
        errno == EMFILE ? "; see ulimit -n" : ""));
  }
  if (InodeOf(pipe) != place.inode) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     " is not the peer's doorbell: the peer probably runs in "
                     "another container"));
  }
  return DoorbellButton(place, std::move(pipe));
}

void DoorbellButton::Press() {
  if (place_->armed.load(std::memory_order_seq_cst) != 0) Ring();
}

void DoorbellButton::Ring() {
  // Only one of the pressers writes.
  if (place_->armed.exchange(0, std::memory_order_seq_cst) == 0) return;
  // This cannot fail: the pipe never holds more than a few bytes.
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), "", 1);
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

absl::StatusOr<std::unique_ptr<DeathWatch>> DeathWatch::Create(
    absl::Span<const pid_t> processes) {
  base::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return OutOfDescriptors();
  std::unique_ptr<DeathWatch> watch(new DeathWatch(std::move(epoll)));
  watch->processes_.resize(processes.size());
  for (size_t index = 0; index < processes.size(); ++index) {
    if (processes[index] == getpid()) continue;
    HVDLITE_RETURN_IF_ERROR(watch->Add(index, processes[index]));
  }
  return watch;
}

absl::Status DeathWatch::Add(size_t index, pid_t process) {
  base::Descriptor descriptor(
      static_cast<int>(syscall(SYS_pidfd_open, process, /*flags=*/0)));
  if (!descriptor.valid()) {
    if (errno == ENOSYS || errno == EPERM) return absl::OkStatus();
    if (errno == EMFILE || errno == ENFILE) return OutOfDescriptors();
    return absl::UnavailableError(absl::StrCat(
        "process ", process, " cannot be watched: ", std::strerror(errno)));
  }
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) {
    return OutOfDescriptors();
  }
  processes_[index] = std::move(descriptor);
  return absl::OkStatus();
}

std::optional<size_t> DeathWatch::Next() {
  epoll_event event = {};
  if (epoll_wait(epoll_.get(), &event, 1, /*timeout=*/0) != 1) {
    return std::nullopt;
  }
  const size_t index = event.data.u64;
  // Closing the descriptor would not remove it: a forked child may also have
  // it.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, processes_[index].get(), nullptr);
  processes_[index] = base::Descriptor();
  return index;
}

}  // namespace hvdlite::negotiation
