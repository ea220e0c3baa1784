#include "trainers/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "trainers/input_error.h"

namespace hvdlite::trainers {

void RequireWritable(const std::string& file) {
  const std::string beside = file + ".tmp";
  errno = 0;
  if (!std::ofstream(beside) || std::filesystem::is_directory(file)) {
    throw InputError("cannot write '" + file + "': " +
                     (errno != 0 ? std::strerror(errno) : "is a directory"));
  }
  std::filesystem::remove(beside);
}

}  // namespace hvdlite::trainers
