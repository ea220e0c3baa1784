// Intervals of time: of events that overlap, what they cover counts once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hvdlite::timeline {

using Interval = std::pair<int64_t, int64_t>;  // start and end, in ns

// Adds `interval`; where it meets the last, that becomes longer instead. For
// UnionOf(), which then has fewer to sort.
void AddTo(std::vector<Interval>* intervals, const Interval& interval);

// Sorted, without overlaps.
std::vector<Interval> UnionOf(std::vector<Interval> intervals);

// Time that `united`, a union, covers; at most the largest int64_t.
int64_t CoveredNs(const std::vector<Interval>& united);

// The same of [from_ns, to_ns).
int64_t CoveredNs(const std::vector<Interval>& united, int64_t from_ns,
                  int64_t to_ns);

}  // namespace hvdlite::timeline
