// Files that hold JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace hvdlite::trainers {

// The value in `file`. Throws InputError that names the file and `expected`, as
// "a list of reports", if it cannot be read, and the offset in bytes if it is
// not JSON.
nlohmann::json ReadJsonFile(const std::filesystem::path& file,
                            const std::string& expected);

// Replaces `file` as a whole, by way of one beside it. Throws InputError that
// names the file if it cannot be written.
void WriteJsonFile(const std::filesystem::path& file,
                   const nlohmann::json& value);

}  // namespace hvdlite::trainers
