// Pipes.
#pragma once

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace hvdlite::base {

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

// Closed on exec; `flags` as for pipe2(2), such as O_NONBLOCK.
// ResourceExhausted if there are no descriptors left.
absl::StatusOr<Pipe> MakePipe(int flags = 0);

}  // namespace hvdlite::base
