// The shared part of the programs that generate data.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <vector>

namespace hvdlite::trainers {

// The body of main(): parses the flags of `app`, which has the program's name,
// and runs `generate`. Prints an exception's message on standard error. Returns
// the exit status: kInputErrorExitCode after InputError or wrong flags, and 1
// after another exception.
int RunGenerator(CLI::App& app, int argc, char** argv,
                 const std::function<void()>& generate);

// Makes `files`, whose names are relative to `directory`. `write` writes them
// into the directory that it gets; they get their final names when all are
// complete. Throws InputError, before anything is generated, if the directory
// cannot be created or written to; if a file exists and `overwrite` is false;
// or if one of `others` exists, which a trainer would read instead of them or
// in addition.
void WriteDataSet(
    const std::filesystem::path& directory,
    const std::vector<std::filesystem::path>& files,
    const std::vector<std::filesystem::path>& others, bool overwrite,
    const std::function<void(const std::filesystem::path& directory)>& write);

}  // namespace hvdlite::trainers
