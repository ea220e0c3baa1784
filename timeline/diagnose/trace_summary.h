// Where the time of a trace went: by event name, and which share of a
// training's time went into negotiation and communication. A sum that does not
// fit into 64 bits is the limit that it is beyond.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Whether `slice` is a mark of Horovod's that takes no time: of a cycle, or of
// a rank that was ready.
bool IsTick(const Trace& trace, const TraceSlice& slice);

struct NameSummary {
  std::string name;
  int64_t wall_ns = 0;     // sum of durations
  int64_t self_ns = 0;     // the same less direct children's
  int64_t covered_ns = 0;  // at least one went on, wherever
  int64_t occurrences = 0;

  // Wall duration per occurrence; 0 if there is none.
  double average_wall_ns() const;
};

struct TraceSummary {
  std::vector<NameSummary> names;  // sorted by name
  NameSummary totals;              // over all names; its name is empty
};

// Time that each of `trace.slices` took itself: its duration less that of its
// direct children. A slice is a child of the shortest slice of its (pid, tid)
// that contains it; of two with the same times the earlier in the file is the
// parent. Slices that overlap without one containing the other are no children
// of each other.
std::vector<int64_t> SelfTimesNs(const Trace& trace);

// Over the whole trace. Chunk lanes of hvdlite's ranks are left out: they
// repeat time that the batch lane shows. So are ticks.
TraceSummary Summarize(const Trace& trace);

// The same for each pid, which is the rank in hvdlite's traces.
std::map<int64_t, TraceSummary> SummarizeByProcess(const Trace& trace);

// Shares, 0 to 1, of the time from a rank's first event to its last; means over
// ranks.
struct TimeShares {
  // A tensor is in negotiation (its NEGOTIATE_* event), and no batch runs: it
  // waits for a slower rank, or until there is enough for a batch.
  double negotiating = 0;
  // A batch runs (*_BATCH on the batch lane).
  double communicating = 0;
  // The application waits for gradients: what computation did not hide of the
  // two above. nullopt: no rank has recorded kWaitForGradients.
  std::optional<double> exposed;
  int64_t ranks = 0;
};

// nullopt if `trace` is none of hvdlite's, or nothing in it took time.
std::optional<TimeShares> SharesOf(const Trace& trace);

}  // namespace hvdlite::timeline
