// Descriptor: a file descriptor that is closed with its owner; pipes of them;
// writing and reading as a whole.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

class Descriptor {
 public:
  Descriptor() = default;  // none
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  bool valid() const { return number_ >= 0; }
  int get() const { return number_; }
  // The caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

// Closed on exec; `flags` as for pipe2(2), such as O_NONBLOCK.
// ResourceExhausted if there are no descriptors left.
absl::StatusOr<Pipe> MakePipe(int flags = 0);

// Writes all of `data`; waits where the descriptor does not block and is full.
// 0, or the errno of what failed, when the rest is lost; a limit of the files'
// sizes (ulimit -f) is EFBIG, and no signal.
int WriteAll(int descriptor, absl::string_view data);

// All that the regular file `path` holds. An error says what failed and why, as
// of a folder or a device, or of a file of /proc whose process has ended after
// it was opened.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace hvdlite::base
