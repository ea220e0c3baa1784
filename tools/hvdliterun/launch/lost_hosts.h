// Finds hosts that a launcher can no longer reach.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/plan/launcher.h"

namespace hvdlite::launch {

// Those of `hosts` on which an empty program cannot be started with `flags`.
// Each try takes at most ten seconds.
std::vector<std::string> LostHosts(const Flags& flags,
                                   const HostEnvironment& host_environment,
                                   Launcher launcher,
                                   const std::vector<Host>& hosts);

}  // namespace hvdlite::launch
