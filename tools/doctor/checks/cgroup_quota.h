// A container's share of the CPUs.
#pragma once

#include "tools/support/system_files.h"

namespace hvdlite::doctor {

// The smallest quota of the process's cgroup (version 1 or 2) and those above
// it, in CPUs; 0: none.
double CgroupQuota(const SystemFiles& files);

}  // namespace hvdlite::doctor
