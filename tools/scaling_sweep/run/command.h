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
