// What --dry-run prints.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/plan/job.h"

namespace hvdlite::launch {

// One line that a shell reads as these words.
std::string ShellCommand(const std::vector<std::string>& words);

// Command, environment with sources, a core map for each kind of host (hosts
// with equally many ranks have the same), and notes.
std::string RenderDryRun(const Job& job);

}  // namespace hvdlite::launch
