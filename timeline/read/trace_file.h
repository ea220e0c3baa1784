// Trace files: their texts, packed with gzip or not, and files that are written
// whole or not at all.
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
  std::string warning;  // a line for people, such as that it is cut off
};

// Reads `path` as it is, or, if it begins as gzip does, what is packed in it:
// one member after the other, as far as they go. Errors: it cannot be read; it
// grows beyond all proportion (more than 64 MiB, and more than 200 times its
// size) as it is unpacked.
absl::StatusOr<TraceText> ReadTraceText(const std::string& path);

// The file `path`, or, if there is none, the parts of it that there are, by
// rank. NotFound: neither.
absl::StatusOr<std::vector<std::string>> FindTraceFiles(
    const std::string& path);

// A file that is written beside `path`, and takes its place at the end, or a
// stream (base::NewFile); packed with gzip if `path` ends in ".gz". Errors name
// `path` and the reason.
class OutputFile final : public TraceSink {
 public:
  // Error: there is something else than a file or a stream at `path`, or none
  // can be made.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path);
  ~OutputFile() override;  // without Commit() it leaves nothing

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Commit();

 private:
  struct Stream;
  explicit OutputFile(std::unique_ptr<Stream> stream);

  std::unique_ptr<Stream> stream_;
};

}  // namespace hvdlite::timeline
