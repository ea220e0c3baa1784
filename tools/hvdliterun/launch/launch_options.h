// How a job's launcher is to be called, from flags and surroundings.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tools/hvdliterun/launch/launcher.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// For ranks on `hosts`, which are some of the allocation's. Notes what is added
// without being asked for. InvalidArgument: root outside a container, without
// the flag; NotFound: no launcher.
absl::StatusOr<LaunchOptions> LaunchOptionsOf(const Flags& flags,
                                              const Surroundings& surroundings,
                                              const Allocation& allocation,
                                              const std::vector<Host>& hosts,
                                              Variables& variables);

}  // namespace hvdlite::launch
