// Finding the files of a data set.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hvdlite::trainers {

// `folder`/`name`, or else `folder`/`name`.gz, whichever exists; or nothing.
std::optional<std::filesystem::path> FindPlainOrGzipped(
    const std::filesystem::path& folder, const std::string& name);

// Throws InputError that says why, unless `data_dir` is a directory.
void RequireDataDirectory(const std::filesystem::path& data_dir);

}  // namespace hvdlite::trainers
