// What makes a SPEC invalid.
#pragma once

#include "absl/status/status.h"
#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// InvalidArgument that names the field, what it holds and what it may hold.
absl::Status CheckSpec(const Spec& spec);

}  // namespace hvdlite::scaling_sweep
