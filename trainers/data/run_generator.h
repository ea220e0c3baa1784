// What the programs that generate data have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <vector>

namespace hvdlite::trainers {

// The body of main(): parses the flags of `app`, which bears the program's
// name, and runs `generate`. An exception's message goes to standard error.
// Returns the exit status: kInputErrorExitCode after InputError or wrong flags,
// and 1 after another exception.
int RunGenerator(CLI::App& app, int argc, char** argv,
                 const std::function<void()>& generate);

// Makes `files`, which are relative to `directory`, by `write`, which writes
// them into the folder that it is given: they have their names once all are
// complete. Throws InputError, before anything is generated, if the directory
// cannot be made or written to; if a file exists already, unless `overwrite`;
// and if one of `others` exists, which a trainer would read instead of them or
// beside them.
void WriteDataSet(
    const std::filesystem::path& directory,
    const std::vector<std::filesystem::path>& files,
    const std::vector<std::filesystem::path>& others, bool overwrite,
    const std::function<void(const std::filesystem::path& folder)>& write);

}  // namespace hvdlite::trainers
