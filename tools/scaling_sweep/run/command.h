// Builds the command line of a run.
#pragma once

#include <string>
#include <vector>

#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Absolute paths.
struct RunFiles {
  std::string report;
  std::string trace;  // empty: no trace is recorded
  std::string log;    // standard output and error
};

struct Command {
  std::vector<std::string> arguments;  // the program to start and its arguments
  Variables environment;           // added to this process's variables
};

// Replaces the placeholders in the texts of the command. Without a trace,
// {trace} becomes "trace.json" beside the report.
Configuration FilledIn(const Configuration& configuration,
                       const RunFiles& files);

// Returns the command with `launcher` (hvdliterun), or without it if the
// configuration is `alone`.
Command BuildCommand(const Spec& spec, const Configuration& configuration,
                     const RunFiles& files, const std::string& launcher,
                     bool oversubscribed);

// Returns the directory of all runs of a configuration, relative to that of the
// results: "runs/1x2x1-core-good-1f2e3d4c".
std::string DirectoryOf(const Configuration& configuration);

// Returns the files in `directory`, an absolute path. There is a trace if the
// spec records this repeat.
RunFiles FilesIn(const std::string& directory, const Spec& spec, int repeat);

// Returns the arguments before the program. Without `files` people can type
// them.
std::vector<std::string> LauncherWords(
    const Spec& spec, const Configuration& configuration,
    const std::string& launcher, bool oversubscribed,
    const RunFiles& files = {
        .report = "report.json", .trace = "trace.json", .log = ""});

// Returns the program and its arguments with the placeholders replaced. `env`
// starts the program if variables must not reach it.
std::vector<std::string> ProgramArguments(const Spec& spec,
                                          const Configuration& configuration,
                                          const RunFiles& files);

// Quotes the arguments for a shell.
std::string ShellText(const std::vector<std::string>& arguments);

}  // namespace hvdlite::scaling_sweep
