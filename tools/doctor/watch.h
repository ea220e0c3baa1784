// --watch: shows the load of this host's cores by all processes.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "support/machine.h"

namespace hvdlite::doctor {

// Samples all cores of the host about once a second for `duration`. Returns a
// text with the load of each core and the processes that caused it. `pause`
// waits for the given time.
std::string WatchCores(const support::SystemFiles& files,
                       absl::Duration duration, const base::Clock& clock,
                       const std::function<void(absl::Duration)>& pause);

}  // namespace hvdlite::doctor
