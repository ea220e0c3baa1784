// The launcher of a job and its options: root, networks, ssh and lost ranks.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "support/libraries.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// Options for ranks on `hosts` (a part of the allocation) of a program with
// these `libraries`. `this_host`: this host is one of `hosts`. Adds a note for
// each option that the user did not request. InvalidArgument: root outside a
// container without the flag; an option that the launcher does not accept or
// this host does not have. NotFound: no launcher.
absl::StatusOr<LaunchOptions> LaunchOptionsOf(
    const Flags& flags, const HostEnvironment& host_environment,
    const Allocation& allocation, const std::vector<Host>& hosts,
    bool this_host, const std::vector<support::Library>& libraries,
    Variables& variables);

}  // namespace hvdlite::launch
