// Merges traces into one with aligned clocks: per-rank trace files, or files
// that were copied from hosts without a common file system.
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

// The clock of a process, as its trace describes it.
struct ProcessClock {
  int64_t pid = 0;  // the rank
  // Time plus offset is the time of rank 0's clock. 0 in a merged trace.
  int64_t offset_ns = 0;
  std::optional<int64_t> uncertainty_ns;  // +- error of the offset
};

struct MergedTrace {
  std::string path;  // the file that was read
  std::vector<ProcessClock> clocks;
  int64_t events = 0;                 // copied, including metadata
  std::vector<std::string> warnings;  // for people, one line each
};

struct MergeOptions {
  // Also merges processes without a clock offset, as if it were 0.
  bool force = false;
  // Whether to keep an event of the file with this index. `start_ns` is its
  // time on rank 0's clock. An empty function keeps all.
  std::function<bool(size_t file, const ParsedEvent& event,
                     std::optional<int64_t> start_ns)>
      keep = {};
  // Called when everything is written, before the file is renamed to `out`. If
  // it returns an error, `out` is unchanged and MergeTraces() returns the
  // error. May be empty.
  std::function<absl::Status()> accept = {};
};

// Writes the events of the trace files `paths`, complete or not, to `out` as
// one array with times of rank 0's clock (gzipped if `out` ends in ".gz").
// Returns what each file contained. Errors: a file cannot be read or is not a
// trace; two files are of the same rank; a process has no clock offset (unless
// forced); `out` cannot be written.
absl::StatusOr<std::vector<MergedTrace>> MergeTraces(
    const std::vector<std::string>& paths, const std::string& out,
    const MergeOptions& options);

}  // namespace hvdlite::timeline
