// How a job's launcher is called: which one, and what it is told of root, of
// networks, of ssh and of ranks that are lost.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "support/libraries.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// For ranks on `hosts`, which are some of the allocation's, and one of them
// `this_host`, of a program with these libraries. Notes what is added without
// being asked for. InvalidArgument: root outside a container, without the flag;
// what the launcher cannot be told, or this host does not have; NotFound: no
// launcher.
absl::StatusOr<LaunchOptions> LaunchOptionsOf(
    const Flags& flags, const Surroundings& surroundings,
    const Allocation& allocation, const std::vector<Host>& hosts,
    bool this_host, const std::vector<support::Library>& libraries,
    Variables& variables);

}  // namespace hvdlite::launch
