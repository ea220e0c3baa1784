// A trace that is merged from several, with times of rank 0's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {

// Writes events as one array. An event is JSON without the comma that separates
// it from the next.
class MergedFile {
 public:
  explicit MergedFile(TraceSink* sink) : sink_(sink) {}

  absl::Status Add(absl::string_view event);

  // Adds a line of metadata. The line that describes the rank sets
  // `clock_offset_ns`; it is written with an offset of 0, since the merge
  // applies the offset.
  absl::Status AddMetadata(absl::string_view line,
                           std::optional<int64_t>* clock_offset_ns);

  // Adds an event line of AppendEventLine(), shifted by the offset. Errors: the
  // line has another form, or its time does not fit.
  absl::Status AddShifted(absl::string_view line, int64_t clock_offset_ns);

  absl::Status Finish();

 private:
  TraceSink* const sink_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace hvdlite::timeline
