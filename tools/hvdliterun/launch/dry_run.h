// The output of --dry-run, for users and for programs.
#pragma once

#include <string>
#include <vector>

#include "tools/hvdliterun/launch/job.h"

namespace hvdlite::launch {

// One line that a shell reads as these arguments.
std::string ShellCommand(const std::vector<std::string>& arguments);

// Command, environment with sources, a core map for each kind of host (hosts
// with the same number of ranks have the same map), and notes.
std::string RenderDryRun(const Job& job);

// The same as a JSON object on one line; docs/explanation/launcher.md
// describes it.
std::string DryRunJson(const Job& job);

}  // namespace hvdlite::launch
