#include "tools/support/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/descriptor.h"
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

void WriteFile(const std::string& file, const std::string& text) {
  const auto failed = [&](const std::string& reason) {
    return InputError("cannot write '" + file + "': " + reason);
  };
  if (IsNoFile(file)) throw failed("is not a regular file");
  const std::string temporary = file + ".tmp";
  const base::Descriptor descriptor(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!descriptor.valid()) throw failed(std::strerror(errno));
  int error = base::WriteAll(descriptor.get(), text);
  if (error == 0 && fsync(descriptor.get()) != 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), file.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return;
  std::remove(temporary.c_str());
  throw failed(std::strerror(error));
}

}  // namespace hvdlite::support
