// Where a trace recorder's lines go.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// Called by one thread at a time; may block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // Appends `lines`, which are whole lines. After an error the sink holds none
  // of them or whole ones, as far as that can be had.
  virtual absl::Status Append(absl::string_view lines) = 0;
};

}  // namespace hvdlite::timeline
