// The command line of a run.
#pragma once

#include <string>
#include <vector>

#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Absolute paths.
struct RunFiles {
  std::string report;
  std::string trace;  // empty: none is to be recorded
  std::string log;    // standard output and error
};

struct Command {
  std::vector<std::string> words;  // the first is the program to start
  Variables environment;           // in addition to this process's
};

// With the placeholders in its texts replaced; {trace} where none is recorded
// by "trace.json" beside the report.
Configuration FilledIn(const Configuration& configuration,
                       const RunFiles& files);

// Through `launcher` (hvdliterun), or without where the configuration is alone.
Command BuildCommand(const Spec& spec, const Configuration& configuration,
                     const RunFiles& files, const std::string& launcher,
                     bool oversubscribed);

// "runs/1x2x1-core-good-1f2e3d4c": below the results' folder, of all runs of a
// configuration.
std::string FolderOf(const Configuration& configuration);

// In `folder`, an absolute path; a trace where the SPEC has this repeat
// recorded.
RunFiles FilesIn(const std::string& folder, const Spec& spec, int repeat);

// The part of it that comes before the program; without `files` for people to
// type.
std::vector<std::string> LauncherWords(
    const Spec& spec, const Configuration& configuration,
    const std::string& launcher, bool oversubscribed,
    const RunFiles& files = {
        .report = "report.json", .trace = "trace.json", .log = ""});

// Program and arguments, placeholders replaced; by env, where variables are not
// to reach the program.
std::vector<std::string> ProgramWords(const Spec& spec,
                                      const Configuration& configuration,
                                      const RunFiles& files);

// The words as a shell reads them again.
std::string ShellText(const std::vector<std::string>& words);

}  // namespace hvdlite::scaling_sweep
