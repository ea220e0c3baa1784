#include "trainers/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

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

void ReplaceFile(const std::string& temporary, const std::string& file) {
  const int descriptor = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!flushed) {
    throw std::runtime_error("cannot write '" + temporary +
                             "' to the disk: " + std::strerror(error));
  }
  if (std::rename(temporary.c_str(), file.c_str()) != 0) {
    throw std::runtime_error("cannot rename '" + temporary + "' to '" + file +
                             "': " + std::strerror(errno));
  }
}

}  // namespace hvdlite::trainers
