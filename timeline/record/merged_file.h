// A trace that is put together from events of several, their times on rank 0's
// clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {

// Events as one array. An event is JSON without the comma that separates it
// from the next.
class MergedFile {
 public:
  explicit MergedFile(TraceSink* sink) : sink_(sink) {}

  absl::Status Add(absl::string_view event);

  // Adds a line of metadata. From the one that describes the rank it learns the
  // clock offset, and leaves a 0 in its place: the merge applies it.
  absl::Status AddMetadata(absl::string_view line,
                           std::optional<int64_t>* clock_offset_ns);

  // Adds an event as AppendEventLine() writes it, so much later. Error: it is
  // not of that form, or its time does not fit.
  absl::Status AddShifted(absl::string_view line, int64_t clock_offset_ns);

  absl::Status Finish();

 private:
  TraceSink* const sink_;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace hvdlite::timeline
