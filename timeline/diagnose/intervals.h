// Intervals of time. Time that several events cover counts once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hvdlite::timeline {

using Interval = std::pair<int64_t, int64_t>;  // start and end, in ns

// Appends `interval`, or extends the last interval if the two meet. UnionOf()
// then has fewer intervals to sort.
void AddTo(std::vector<Interval>* intervals, const Interval& interval);

// Returns sorted intervals without overlaps.
std::vector<Interval> UnionOf(std::vector<Interval> intervals);

// The time that `united`, a union, covers; at most the largest int64_t.
int64_t CoveredNs(const std::vector<Interval>& united);

// The same within [from_ns, to_ns).
int64_t CoveredNs(const std::vector<Interval>& united, int64_t from_ns,
                  int64_t to_ns);

}  // namespace hvdlite::timeline
