#include "trainers/benchmark/json_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr int kIndent = 4;

support::InputError CannotWrite(const fs::path& file,
                                const std::string& reason) {
  return support::InputError("cannot write '" + file.string() + "': " + reason);
}

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
  if (fs::exists(file) && !fs::is_regular_file(file)) {
    throw CannotWrite(file, "is not a regular file");
  }
  fs::path beside = file;
  beside += ".tmp";
  std::ofstream stream(beside);
  stream << value.dump(kIndent) << "\n";
  stream.close();
  if (!stream) throw CannotWrite(file, std::strerror(errno));
  std::error_code error;
  fs::rename(beside, file, error);
  if (error) throw CannotWrite(file, error.message());
}

}  // namespace hvdlite::trainers
