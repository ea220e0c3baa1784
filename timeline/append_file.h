// A file that is only appended to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "timeline/trace_sink.h"

namespace hvdlite::timeline {

// Writes straight to the kernel (O_APPEND, write(2)), with no buffer of its
// own: what Append() took is in the file even if the process is killed right
// after. Not thread-safe.
class AppendFile final : public TraceSink {
 public:
  // Creates or truncates `path`. Errors name the path and the reason.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Create(
      const std::string& path);

  ~AppendFile() override;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // On an error (a full disk, say) the file is cut back to what it held before.
  absl::Status Append(absl::string_view lines) override;

 private:
  AppendFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  const int descriptor_;
  int64_t size_bytes_ = 0;
};

}  // namespace hvdlite::timeline
