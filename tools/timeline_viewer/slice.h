// A part of a trace: some steps, some time, some ranks.
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
  // Both included. Each rank's events of these steps; of ranks that do not tell
  // of them, those while the others were in them.
  std::optional<std::pair<int64_t, int64_t>> steps;
  // Since the trace's first event, as the viewer prints times; `to_ns` is not
  // included.
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  std::set<int64_t> ranks;  // empty: all
};

// Adds the flags that say what to take; `options` outlives the parsing.
void AddSliceFlags(CLI::App& command, SliceOptions& options);

// Writes the events of the trace `path`, or of its parts, that `options` ask
// for to `out`: those that last into the time are whole, and metadata of the
// ranks is all there. Tells people how many. Errors, which leave `out` as it
// was: `path` cannot be read, or does not tell of the steps; NotFound if there
// is nothing of what is asked for, which says what there is; `out` cannot be
// written.
absl::Status SliceTrace(const std::string& path, const SliceOptions& options,
                        const std::string& out, timeline::Report* report);

}  // namespace hvdlite::timeline_viewer
