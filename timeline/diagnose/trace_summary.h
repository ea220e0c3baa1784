// Finds where the time of a trace went: by event name, and which part of a
// training's time went into negotiation and communication. Sums that do not fit
// into 64 bits become the smallest or largest value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Whether `slice` is a mark in Horovod's timeline that takes no time: a cycle,
// or a rank that became ready.
bool IsTick(const Trace& trace, const TraceSlice& slice);

struct NameSummary {
  std::string name;
  int64_t wall_ns = 0;     // sum of durations
  int64_t self_ns = 0;     // the same without direct children
  int64_t covered_ns = 0;  // time in which at least one was active anywhere
  int64_t occurrences = 0;

  // Wall duration per occurrence; 0 if there is none.
  double average_wall_ns() const;
};

struct TraceSummary {
  std::vector<NameSummary> names;  // sorted by name
  NameSummary totals;              // over all names; its name is empty
};

// The self time of each of `trace.slices`: its duration without its direct
// children. A slice is a child of the shortest slice of its (pid, tid) that
// contains it. Of two slices with the same times, the earlier one in the file
// is the parent. Slices that only overlap are not children of each other.
std::vector<int64_t> SelfTimesNs(const Trace& trace);

// Summarizes the whole trace. Ticks are left out. So are the chunk tracks of
// hvdlite's ranks: they repeat time that the bucket track shows.
TraceSummary Summarize(const Trace& trace);

// The same for each pid, which is the rank in hvdlite's traces.
std::map<int64_t, TraceSummary> SummarizeByProcess(const Trace& trace);

// Parts (0 to 1) of the time from a rank's first event to its last; means over
// ranks.
struct TimeShares {
  // A tensor is in negotiation (its NEGOTIATE_* event), and no bucket runs: it
  // waits for a slower rank, or for a bucket to fill.
  double negotiating = 0;
  // A bucket runs (*_BUCKET on the bucket track).
  double communicating = 0;
  // The application waits for gradients: the part of the two above that
  // computation did not hide. nullopt: no rank recorded kWaitForGradients.
  std::optional<double> exposed;
  int64_t ranks = 0;
};

// Returns nullopt if hvdlite did not write `trace`, or if nothing took time.
std::optional<TimeShares> SharesOf(const Trace& trace);

}  // namespace hvdlite::timeline
