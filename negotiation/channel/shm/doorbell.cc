#include "negotiation/channel/shm/doorbell.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

// 0: none.
uint64_t InodeOf(const base::Descriptor& descriptor) {
  struct stat status = {};
  if (fstat(descriptor.get(), &status) != 0) return 0;
  return static_cast<uint64_t>(status.st_ino);
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

}  // namespace hvdlite::negotiation
