// Extracts a part of a trace: some steps, some time, some ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "timeline/report/report.h"

namespace CLI {
class App;
}

namespace hvdlite::timeline_viewer {

struct SliceOptions {
  // The first and the last step. A rank's events during its own steps are kept.
  // Ranks without recorded steps use the time of the others' steps.
  std::optional<std::pair<int64_t, int64_t>> steps;
  // Times since the trace's first event, as the viewer prints them. `to_ns`
  // itself is not included.
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  std::set<int64_t> ranks;  // empty: all
};

// Adds the flags that select a part; `options` must outlive the parsing.
void AddSliceFlags(CLI::App& command, SliceOptions& options);

// Writes to `out` the events that `options` select in the trace `path` or in
// its per-rank files. Events that overlap the time are kept completely, and so
// is the metadata of the ranks. Reports the number of events. Errors leave
// `out` unchanged: `path` cannot be read or has no steps; NotFound if nothing
// matches (the message lists what exists); `out` cannot be written.
absl::Status SliceTrace(const std::string& path, const SliceOptions& options,
                        const std::string& out, timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
