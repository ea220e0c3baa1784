// What `tune` found, for people.
#pragma once

#include <string>

#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {

// Ranking, why the winner wins, and the command that uses its settings. `spec`
// has the program, `launcher` is how to call hvdliterun.
std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher);

}  // namespace hvdlite::scaling_sweep
