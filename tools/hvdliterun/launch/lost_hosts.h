// Which hosts a launcher cannot reach any more.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/surroundings.h"

namespace hvdlite::launch {

// Those of `hosts` on which a program that does nothing cannot be started as
// `flags` would have it. Each try takes ten seconds at most.
std::vector<std::string> LostHosts(const Flags& flags,
                                   const Surroundings& surroundings,
                                   Launcher launcher,
                                   const std::vector<Host>& hosts);

}  // namespace hvdlite::launch
