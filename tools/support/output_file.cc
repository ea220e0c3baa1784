#include "tools/support/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tools/support/input_error.h"

namespace hvdlite::support {

namespace {

// A directory, or a device, which a file of its name would replace.
bool IsNoFile(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(file, error) &&
         !std::filesystem::is_regular_file(file, error);
}

}  // namespace

void RequireWritable(const std::string& file) {
  if (IsNoFile(file)) {
    throw InputError("cannot write '" + file + "': is not a regular file");
  }
  const std::string beside = file + ".tmp";
  if (!std::ofstream(beside)) {
    throw InputError("cannot write '" + file + "': " + std::strerror(errno));
  }
  std::filesystem::remove(beside);
}

void ReplaceFile(const std::string& temporary, const std::string& file) {
  if (IsNoFile(file)) {
    throw std::runtime_error("cannot replace '" + file +
                             "': is not a regular file");
  }
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

}  // namespace hvdlite::support
