// Descriptor: a file descriptor that its owner closes. Also pipes, and
// functions that write or read whole files.
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
  // Gives up ownership: the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

// Makes a pipe that is closed on exec. `flags` as for pipe2(2), such as
// O_NONBLOCK. ResourceExhausted if no descriptors are left.
absl::StatusOr<Pipe> MakePipe(int flags = 0);

// Writes all of `data`, and waits where a non-blocking descriptor is full.
// Returns 0, or the errno of the failure; the rest of `data` is then lost. The
// file size limit (ulimit -f) gives EFBIG and no signal.
int WriteAll(int descriptor, absl::string_view data);

// Reads the whole regular file `path`. An error says what failed and why, such
// as for a directory or a device, or for a file of /proc whose process ended
// after it was opened.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace hvdlite::base
