#include "trainers/data/formats/find_file.h"

#include <system_error>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {

namespace fs = std::filesystem;

std::optional<fs::path> FindPlainOrGzipped(const fs::path& folder,
                                           const std::string& name) {
  for (const char* const ending : {"", ".gz"}) {
    const fs::path file = folder / (name + ending);
    std::error_code error;
    if (fs::exists(file, error)) return file;
  }
  return std::nullopt;
}

void RequireDataDirectory(const fs::path& data_dir) {
  std::error_code error;
  if (fs::is_directory(data_dir, error)) return;
  throw InputError("cannot read the data directory '" + data_dir.string() +
                   "': " + (error ? error.message() : "not a directory"));
}

}  // namespace hvdlite::trainers
