// Reads trace files, packed with gzip or not, and writes files atomically.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {

struct TraceText {
  std::string text;
  std::string warning;  // a line for people, such as "PATH: cut off: ..."
};

// Reads `path` and unpacks it if it is gzipped: all members, as far as they are
// complete. Errors: the file cannot be read; it unpacks to more than 64 MiB and
// more than 200 times its size.
absl::StatusOr<TraceText> ReadTraceText(const std::string& path);

// Returns `path` if that file exists, otherwise its per-rank trace files, by
// rank. Errors: NotFound if there are none.
absl::StatusOr<std::vector<std::string>> FindTraceFiles(
    const std::string& path);

// A file that is written beside `path` and renamed to it at the end, or a
// stream (base::NewFile). It is packed with gzip if `path` ends in ".gz".
// Errors name `path` and the reason.
class OutputFile final : public TraceSink {
 public:
  // Errors: `path` is neither a file nor a stream, or cannot be created.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path);
  ~OutputFile() override;  // removes the file unless Commit() was called

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Commit();

 private:
  struct Stream;
  explicit OutputFile(std::unique_ptr<Stream> stream);

  std::unique_ptr<Stream> stream_;
};

}  // namespace hvdlite::timeline
