// One trace of several: parts of ranks, or parts that were sent from where no
// other rank could read them, with their clocks aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timeline/read/parsed_event.h"

namespace hvdlite::timeline {

// What a trace tells of the clock of one of its processes.
struct ProcessClock {
  int64_t pid = 0;  // the rank
  // To be added to its times; then they are rank 0's. 0 in a merged trace.
  int64_t offset_ns = 0;
  std::optional<int64_t> uncertainty_ns;  // of the offset, to either side
};

struct MergedTrace {
  std::string path;  // that was read
  std::vector<ProcessClock> clocks;
  int64_t events = 0;                 // taken over, metadata included
  std::vector<std::string> warnings;  // for people, a line each
};

struct MergeOptions {
  // Takes over what has no clock offset, too, as if it were 0.
  bool force = false;
  // Whether to take over an event of the file with this index. `start_ns` is
  // its time on rank 0's clock. May be empty: all.
  std::function<bool(size_t file, const ParsedEvent& event,
                     std::optional<int64_t> start_ns)>
      keep = {};
  // Asked once everything is written, before it has its name; its error, which
  // leaves `out` as it was, becomes MergeTraces's. May be empty.
  std::function<absl::Status()> accept = {};
};

// Writes the events of the trace files `paths`, whole or not, times on rank 0's
// clock, as one array to `out` (packed if it ends in ".gz"). Returns what there
// was, by file. Errors: a file cannot be read or is no trace; two tell of the
// same rank; events of a process without clock offset, unless forced; `out`
// cannot be written.
absl::StatusOr<std::vector<MergedTrace>> MergeTraces(
    const std::vector<std::string>& paths, const std::string& out,
    const MergeOptions& options);

}  // namespace hvdlite::timeline
