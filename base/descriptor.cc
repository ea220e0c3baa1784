#include "base/descriptor.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvdlite::base {

absl::StatusOr<Pipe> MakePipe(int flags) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC | flags) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot make a pipe: ", std::strerror(errno), "; see ulimit -n"));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace hvdlite::base
