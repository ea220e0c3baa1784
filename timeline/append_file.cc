#include "timeline/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace hvdlite::timeline {

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Create(
    const std::string& path) {
  const int descriptor = ::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot create trace file ", path));
  }
  return std::unique_ptr<AppendFile>(new AppendFile(path, descriptor));
}

AppendFile::~AppendFile() { ::close(descriptor_); }

absl::Status AppendFile::Append(absl::string_view lines) {
  absl::string_view rest = lines;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      absl::Status status = absl::ErrnoToStatus(
          errno, absl::StrCat("cannot write to trace file ", path_));
      if (::ftruncate(descriptor_, size_bytes_) != 0) {
        return absl::Status(
            status.code(),
            absl::StrCat(status.message(), "; its last line is incomplete"));
      }
      return status;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_bytes_ += static_cast<int64_t>(lines.size());
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline
