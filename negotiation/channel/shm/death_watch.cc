#include "negotiation/channel/shm/death_watch.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434  // on all architectures
#endif

namespace hvdlite::negotiation {
namespace {

absl::Status OutOfDescriptors() {
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot watch the processes of this node: ", std::strerror(errno),
      "; see ulimit -n"));
}

}  // namespace

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
