#include "timeline/trace_summary.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "timeline/trace_event.h"

namespace hvdlite::timeline {
namespace {

int64_t EndNs(const TraceSlice& slice) {
  return slice.start_ns + slice.duration_ns;
}

bool IsLeftOut(const Trace& trace, const TraceSlice& slice) {
  return slice.tid == kChunkLane && trace.processes.at(slice.pid).is_rank;
}

// Sums over some slices, by index of their name.
class NameSums {
 public:
  explicit NameSums(const Trace& trace) : sums_(trace.names.size()) {}

  void Add(const TraceSlice& slice, int64_t self_ns) {
    NameSummary& sum = sums_[slice.name];
    sum.wall_ns += slice.duration_ns;
    sum.self_ns += self_ns;
    ++sum.occurrences;
  }

  TraceSummary Finish(const Trace& trace) {
    TraceSummary summary;
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i].occurrences == 0) continue;
      sums_[i].name = trace.names[i];
      summary.totals.wall_ns += sums_[i].wall_ns;
      summary.totals.self_ns += sums_[i].self_ns;
      summary.totals.occurrences += sums_[i].occurrences;
      summary.names.push_back(std::move(sums_[i]));
    }
    std::sort(summary.names.begin(), summary.names.end(),
              [](const NameSummary& a, const NameSummary& b) {
                return a.name < b.name;
              });
    return summary;
  }

 private:
  std::vector<NameSummary> sums_;
};

}  // namespace

double NameSummary::average_wall_ns() const {
  if (occurrences == 0) return 0;
  return static_cast<double>(wall_ns) / static_cast<double>(occurrences);
}

std::vector<int64_t> SelfTimesNs(const Trace& trace) {
  const std::vector<TraceSlice>& slices = trace.slices;
  std::vector<int64_t> self_ns(slices.size());
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // By lane, then parents before their children.
  std::sort(order.begin(), order.end(), [&slices](size_t a, size_t b) {
    const auto key = [&slices](size_t i) {
      const TraceSlice& slice = slices[i];
      return std::make_tuple(slice.pid, slice.tid, slice.start_ns,
                             -slice.duration_ns, i);
    };
    return key(a) < key(b);
  });

  std::vector<size_t> open;  // each contains the next
  for (const size_t i : order) {
    const TraceSlice& slice = slices[i];
    if (!open.empty() &&
        std::tie(slices[open.back()].pid, slices[open.back()].tid) !=
            std::tie(slice.pid, slice.tid)) {
      open.clear();
    }
    while (!open.empty() && EndNs(slices[open.back()]) < EndNs(slice)) {
      open.pop_back();
    }
    self_ns[i] = slice.duration_ns;
    if (!open.empty()) self_ns[open.back()] -= slice.duration_ns;
    open.push_back(i);
  }
  return self_ns;
}

TraceSummary Summarize(const Trace& trace) {
  const std::vector<int64_t> self_ns = SelfTimesNs(trace);
  NameSums sums(trace);
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    if (IsLeftOut(trace, trace.slices[i])) continue;
    sums.Add(trace.slices[i], self_ns[i]);
  }
  return sums.Finish(trace);
}

std::map<int64_t, TraceSummary> SummarizeByProcess(const Trace& trace) {
  const std::vector<int64_t> self_ns = SelfTimesNs(trace);
  std::map<int64_t, NameSums> sums;
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    const TraceSlice& slice = trace.slices[i];
    if (IsLeftOut(trace, slice)) continue;
    sums.try_emplace(slice.pid, trace).first->second.Add(slice, self_ns[i]);
  }
  std::map<int64_t, TraceSummary> summaries;
  for (auto& [pid, process_sums] : sums) {
    summaries.emplace(pid, process_sums.Finish(trace));
  }
  return summaries;
}

}  // namespace hvdlite::timeline
