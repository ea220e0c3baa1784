#include "timeline/diagnose/intervals.h"

#include <algorithm>
#include <limits>

namespace hvdlite::timeline {

void AddTo(std::vector<Interval>* intervals, const Interval& interval) {
  if (!intervals->empty()) {
    Interval& last = intervals->back();
    if (interval.first <= last.second && interval.second >= last.first) {
      last.first = std::min(last.first, interval.first);
      last.second = std::max(last.second, interval.second);
      return;
    }
  }
  intervals->push_back(interval);
}

std::vector<Interval> UnionOf(std::vector<Interval> intervals) {
  if (!std::is_sorted(intervals.begin(), intervals.end())) {
    std::sort(intervals.begin(), intervals.end());
  }
  std::vector<Interval> united;
  for (const Interval& interval : intervals) {
    if (united.empty() || interval.first > united.back().second) {
      united.push_back(interval);
    } else {
      united.back().second = std::max(united.back().second, interval.second);
    }
  }
  return united;
}

int64_t CoveredNs(const std::vector<Interval>& united) {
  uint64_t covered_ns = 0;  // unsigned: a damaged file may have any times
  for (const auto& [start_ns, end_ns] : united) {
    if (end_ns <= start_ns) continue;
    covered_ns +=
        static_cast<uint64_t>(end_ns) - static_cast<uint64_t>(start_ns);
  }
  constexpr auto kMost =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return static_cast<int64_t>(std::min(covered_ns, kMost));
}

int64_t CoveredNs(const std::vector<Interval>& united, int64_t from_ns,
                  int64_t to_ns) {
  auto next = std::lower_bound(united.begin(), united.end(), from_ns,
                               [](const Interval& interval, int64_t at_ns) {
                                 return interval.second < at_ns;
                               });
  int64_t covered_ns = 0;
  for (; next != united.end() && next->first < to_ns; ++next) {
    covered_ns += std::max<int64_t>(
        0, std::min(to_ns, next->second) - std::max(from_ns, next->first));
  }
  return covered_ns;
}

}  // namespace hvdlite::timeline
