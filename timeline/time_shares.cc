#include "timeline/time_shares.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "timeline/trace_event.h"

namespace hvdlite::timeline {
namespace {

using Interval = std::pair<int64_t, int64_t>;  // start and end, in ns

// Time that at least one of `intervals` covers.
int64_t CoveredNs(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  int64_t covered_ns = 0;
  int64_t until_ns = 0;  // what begins before it is covered
  bool first = true;
  for (const auto& [start_ns, end_ns] : intervals) {
    const int64_t from_ns = first ? start_ns : std::max(start_ns, until_ns);
    covered_ns += std::max<int64_t>(0, end_ns - from_ns);
    until_ns = first ? end_ns : std::max(until_ns, end_ns);
    first = false;
  }
  return covered_ns;
}

struct RankEvents {
  std::vector<Interval> all;
  std::vector<Interval> negotiations;
  std::vector<Interval> batches;
  std::vector<Interval> waits;

  int64_t span_ns() const {
    int64_t start_ns = all.front().first;
    int64_t end_ns = start_ns;
    for (const Interval& interval : all) {
      start_ns = std::min(start_ns, interval.first);
      end_ns = std::max(end_ns, interval.second);
    }
    return end_ns - start_ns;
  }
};

std::map<int64_t, RankEvents> EventsByRank(const Trace& trace) {
  std::map<int64_t, RankEvents> ranks;
  for (const TraceSlice& slice : trace.slices) {
    if (!trace.processes.at(slice.pid).is_rank) continue;
    RankEvents& rank = ranks[slice.pid];
    const std::string& name = trace.names[slice.name];
    const Interval interval = {slice.start_ns,
                               slice.start_ns + slice.duration_ns};
    rank.all.push_back(interval);
    if (slice.tid == kBatchLane && absl::EndsWith(name, "_BATCH")) {
      rank.batches.push_back(interval);
    } else if (slice.tid >= kFirstTensorLane &&
               absl::StartsWith(name, "NEGOTIATE_")) {
      rank.negotiations.push_back(interval);
    } else if (slice.tid == kUserLane && name == kWaitForGradients) {
      rank.waits.push_back(interval);
    }
  }
  return ranks;
}

}  // namespace

std::optional<TimeShares> SharesOf(const Trace& trace) {
  TimeShares sums;
  double exposed = 0;
  bool waits_are_recorded = false;
  for (const auto& [pid, rank] : EventsByRank(trace)) {
    const auto span_ns = static_cast<double>(rank.span_ns());
    if (span_ns <= 0) continue;
    const int64_t batches_ns = CoveredNs(rank.batches);
    std::vector<Interval> either = rank.negotiations;
    either.insert(either.end(), rank.batches.begin(), rank.batches.end());
    const int64_t either_ns = CoveredNs(std::move(either));
    sums.negotiating += static_cast<double>(either_ns - batches_ns) / span_ns;
    sums.communicating += static_cast<double>(batches_ns) / span_ns;
    exposed += static_cast<double>(CoveredNs(rank.waits)) / span_ns;
    waits_are_recorded |= !rank.waits.empty();
    ++sums.ranks;
  }
  if (sums.ranks == 0) return std::nullopt;
  const auto ranks = static_cast<double>(sums.ranks);
  sums.negotiating /= ranks;
  sums.communicating /= ranks;
  if (waits_are_recorded) sums.exposed = exposed / ranks;
  return sums;
}

}  // namespace hvdlite::timeline
