// --watch: what this host's cores do for a while, whoever computes there.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "support/machine.h"

namespace hvdlite::doctor {

// Looks at all cores of the host about every second, for `duration`, and tells
// how busy each was, and with which processes. `pause` waits for so long.
std::string WatchCores(const support::SystemFiles& files,
                       absl::Duration duration, const base::Clock& clock,
                       const std::function<void(absl::Duration)>& pause);

}  // namespace hvdlite::doctor
