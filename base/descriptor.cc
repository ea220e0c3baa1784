#include "base/descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvdlite::base {
namespace {

// While it exists, a write of this thread beyond the file size limit fails
// without a signal.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock() {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &previous_);
  }
  ~FileSizeSignalBlock() {
    const timespec at_once = {};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;

 private:
  sigset_t signal_ = {};
  sigset_t previous_ = {};
  bool was_pending_ = false;
};

}  // namespace

absl::StatusOr<Pipe> MakePipe(int flags) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC | flags) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot make a pipe: ", std::strerror(errno), "; see ulimit -n"));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

int WriteAll(int descriptor, absl::string_view data) {
  const FileSizeSignalBlock block;
  while (!data.empty()) {  // Linux moves 2 GiB a call at most
    const ssize_t written = write(descriptor, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready = {.fd = descriptor, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // open() of a pipe without a writer would block.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read '", path, "': it is not a regular file"));
  }
  std::string text;
  std::array<char, size_t{64} << 10> block;
  while (true) {
    const ssize_t bytes = read(file.get(), block.data(), block.size());
    if (bytes == 0) return text;
    if (bytes > 0) {
      text.append(block.data(), static_cast<size_t>(bytes));
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno,
                                 absl::StrCat("cannot read '", path, "'"));
    }
  }
}

}  // namespace hvdlite::base
