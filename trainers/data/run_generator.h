// What the programs that generate data have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>

namespace hvdlite::trainers {

// The body of main(): parses the flags of `app`, which bears the program's
// name, and runs `generate`. An exception's message goes to standard error.
// Returns the exit status: kInputErrorExitCode after InputError or wrong flags,
// and 1 after another exception.
int RunGenerator(CLI::App& app, int argc, char** argv,
                 const std::function<void()>& generate);

// Makes a directory and those that it is in. Throws InputError if that fails.
void CreateOutputDirectory(const std::filesystem::path& directory);

}  // namespace hvdlite::trainers
