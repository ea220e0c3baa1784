// Where the time of a trace went, by event name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "timeline/trace.h"

namespace hvdlite::timeline {

struct NameSummary {
  std::string name;
  int64_t wall_ns = 0;  // sum of durations
  int64_t self_ns = 0;  // the same less direct children's
  int64_t occurrences = 0;

  // Wall duration per occurrence; 0 if there is none.
  double average_wall_ns() const;
};

struct TraceSummary {
  std::vector<NameSummary> names;  // sorted by name
  NameSummary totals;              // sums over all names; its name is empty
};

// Time that each of `trace.slices` took itself: its duration less that of its
// direct children. A slice is a child of the shortest slice of its (pid, tid)
// that contains it; of two with the same times the earlier in the file is the
// parent. Slices that overlap without one containing the other are no children
// of each other.
std::vector<int64_t> SelfTimesNs(const Trace& trace);

// Over the whole trace. Chunk lanes of hvdlite's ranks are left out: they
// repeat time that the batch lane shows.
TraceSummary Summarize(const Trace& trace);

// The same for each pid, which is the rank in hvdlite's traces.
std::map<int64_t, TraceSummary> SummarizeByProcess(const Trace& trace);

}  // namespace hvdlite::timeline
