// SPECs: what to measure, read and checked.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Parses a SPEC's text, checks it and fills in the defaults of repeats, time
// limit and cores. Errors begin with `where`, a file's name, and for what is no
// text format with line and column.
absl::StatusOr<Spec> ParseSpec(const std::string& text,
                               const std::string& where);

// The same for a file, whose folder {spec_dir} in it stands for. NotFound if it
// cannot be read.
absl::StatusOr<Spec> LoadSpec(const std::string& path);

// What two SPECs must have in common for one to continue the other's results:
// all but repeats, time limit and how long tuning takes.
std::string Identity(const Spec& spec);

}  // namespace hvdlite::scaling_sweep
