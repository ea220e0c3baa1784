#include "trainers/benchmark/json_file.h"

#include <algorithm>
#include <fstream>

#include "support/input_error.h"
#include "support/output_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr int kIndent = 4;

}  // namespace

nlohmann::json ReadJsonFile(const fs::path& file, const std::string& expected) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || fs::is_directory(file)) {
    throw support::InputError(
        "cannot read '" + file.string() +
        "': " + (stream ? "is a directory" : std::strerror(errno)) +
        "; expected " + expected);
  }
  try {
    return nlohmann::json::parse(stream);
  } catch (const nlohmann::json::parse_error& error) {
    // The parser counts the bytes that it has read, the wrong one included.
    const size_t offset = std::max<size_t>(error.byte, 1) - 1;
    throw support::InputError("'" + file.string() + "' is not JSON at offset " +
                              std::to_string(offset) + "; expected " +
                              expected);
  }
}

void WriteJsonFile(const fs::path& file, const nlohmann::json& value) {
  support::WriteFile(file, value.dump(kIndent) + "\n");
}

}  // namespace hvdlite::trainers
