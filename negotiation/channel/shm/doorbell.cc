#include "negotiation/channel/shm/doorbell.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434  // on all architectures
#endif

namespace hvdlite::negotiation {
namespace {

// 0: none.
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
  // For reading, too: a pipe without readers would raise SIGPIPE.
  base::Descriptor pipe(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "opening ", path, ", a peer's doorbell, failed: ", std::strerror(errno),
        errno == EMFILE ? "; see ulimit -n" : ""));
  }
  if (InodeOf(pipe) != place.inode) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     " is not the peer's doorbell: it runs in another "
                     "container, probably"));
  }
  return DoorbellButton(place, std::move(pipe));
}

void DoorbellButton::Ring() {
  // One of those who press writes.
  if (place_->armed.exchange(0, std::memory_order_seq_cst) == 0) return;
  // Cannot fail: the pipe never holds more than a few bytes.
  [[maybe_unused]] const ssize_t written = write(pipe_.get(), "", 1);
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
  // Closing it would not do: a forked child may have it, too.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, processes_[index].get(), nullptr);
  processes_[index] = base::Descriptor();
  return index;
}

}  // namespace hvdlite::negotiation
