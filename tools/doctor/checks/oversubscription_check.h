// Judges whether more threads compute than there are CPUs, and whether ranks
// bind theirs to the same cores.
#pragma once

#include <vector>

#include "tools/doctor/checks/rank_threads.h"
#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

// By rank. Ranks of a host whose CPUs overlap share them.
std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks);

}  // namespace hvdlite::doctor
