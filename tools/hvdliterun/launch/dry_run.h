// What --dry-run prints, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/launch/job.h"

namespace hvdlite::launch {

// One line that a shell reads as these words.
std::string ShellCommand(const std::vector<std::string>& words);

// Command, environment with sources, a core map for each kind of host (hosts
// with equally many ranks have the same), and notes.
std::string RenderDryRun(const Job& job);

// The same as a JSON object on one line, which docs/launching.md describes.
std::string DryRunJson(const Job& job);

}  // namespace hvdlite::launch
