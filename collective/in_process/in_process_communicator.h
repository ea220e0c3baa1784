// Communicators whose ranks are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "collective/communicator.h"

namespace hvdlite::collective {

struct InProcessOptions {
  // How long an operation waits for the other ranks; zero: not at all, so that
  // all but the last rank to call fail at once.
  absl::Duration deadline = absl::InfiniteDuration();
};

// One communicator per rank, sharing one world; each may be used by another
// thread. Reduces in rank order: ((r0 + r1) + r2) + ... Detects ranks that call
// different operations or differ in op, dtype, root or size. The last rank to
// arrive does the work on its thread; the others sleep. Destroying a rank's
// communicator while others wait for it, or before they call again, breaks the
// world for them (Unavailable).
std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(
    int size, InProcessOptions options = {});

}  // namespace hvdlite::collective
