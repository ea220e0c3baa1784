#include "timeline/diagnose/trace_summary.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "timeline/diagnose/intervals.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {
namespace {

using Limits = std::numeric_limits<int64_t>;

// Sum and difference of times. A trace may have times of any size; results that
// do not fit become the smallest or largest int64_t.
int64_t SumOfNs(int64_t a_ns, int64_t b_ns) {
  int64_t sum_ns = 0;
  if (!__builtin_add_overflow(a_ns, b_ns, &sum_ns)) return sum_ns;
  return a_ns < 0 ? Limits::min() : Limits::max();
}
int64_t Difference(int64_t a_ns, int64_t b_ns) {
  int64_t difference_ns = 0;
  if (!__builtin_sub_overflow(a_ns, b_ns, &difference_ns)) return difference_ns;
  return a_ns < 0 ? Limits::min() : Limits::max();
}

int64_t EndNs(const TraceSlice& slice) {
  return SumOfNs(slice.start_ns, slice.duration_ns);
}

// Indices of the slices of each track, in file order.
std::vector<std::vector<size_t>> SlicesByTrack(
    const std::vector<TraceSlice>& slices) {
  absl::flat_hash_map<std::pair<int64_t, int64_t>, size_t> track_indices;
  std::vector<std::vector<size_t>> tracks;
  for (size_t i = 0; i < slices.size(); ++i) {
    const TraceSlice& slice = slices[i];
    const auto [track, added] =
        track_indices.try_emplace({slice.pid, slice.tid}, tracks.size());
    if (added) tracks.emplace_back();
    tracks[track->second].push_back(i);
  }
  return tracks;
}

bool IsLeftOut(const Trace& trace, const TraceSlice& slice) {
  if (IsTick(trace, slice)) return true;
  return slice.tid == kChunkTrack && trace.processes.at(slice.pid).is_rank;
}

// Sums over slices, by the index of their name.
class NameSums {
 public:
  explicit NameSums(const Trace& trace)
      : sums_(trace.names.size()), intervals_(trace.names.size()) {}

  void Add(const TraceSlice& slice, int64_t self_ns) {
    NameSummary& sum = sums_[slice.name];
    sum.wall_ns = SumOfNs(sum.wall_ns, slice.duration_ns);
    sum.self_ns = SumOfNs(sum.self_ns, self_ns);
    ++sum.occurrences;
    AddTo(&intervals_[slice.name], {slice.start_ns, EndNs(slice)});
  }

  TraceSummary Finish(const Trace& trace) {
    TraceSummary summary;
    std::vector<Interval> all;
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i].occurrences == 0) continue;
      sums_[i].name = trace.names[i];
      const std::vector<Interval> united = UnionOf(std::move(intervals_[i]));
      sums_[i].covered_ns = CoveredNs(united);
      all.insert(all.end(), united.begin(), united.end());
      NameSummary& totals = summary.totals;
      totals.wall_ns = SumOfNs(totals.wall_ns, sums_[i].wall_ns);
      totals.self_ns = SumOfNs(totals.self_ns, sums_[i].self_ns);
      totals.occurrences += sums_[i].occurrences;
      summary.names.push_back(std::move(sums_[i]));
    }
    summary.totals.covered_ns = CoveredNs(UnionOf(std::move(all)));
    std::sort(summary.names.begin(), summary.names.end(),
              [](const NameSummary& a, const NameSummary& b) {
                return a.name < b.name;
              });
    return summary;
  }

 private:
  std::vector<NameSummary> sums_;
  std::vector<std::vector<Interval>> intervals_;
};

struct RankEvents {
  std::vector<Interval> all;
  std::vector<Interval> negotiations;
  std::vector<Interval> buckets;
  std::vector<Interval> waits;

  int64_t span_ns() const {
    int64_t start_ns = all.front().first;
    int64_t end_ns = start_ns;
    for (const Interval& interval : all) {
      start_ns = std::min(start_ns, interval.first);
      end_ns = std::max(end_ns, interval.second);
    }
    return Difference(end_ns, start_ns);
  }
};

std::map<int64_t, RankEvents> EventsByRank(const Trace& trace) {
  std::map<int64_t, RankEvents> ranks;
  for (const TraceSlice& slice : trace.slices) {
    if (!trace.processes.at(slice.pid).is_rank) continue;
    RankEvents& rank = ranks[slice.pid];
    const std::string& name = trace.names[slice.name];
    const Interval interval = {slice.start_ns, EndNs(slice)};
    rank.all.push_back(interval);
    if (slice.tid == kBucketTrack && absl::EndsWith(name, "_BUCKET")) {
      rank.buckets.push_back(interval);
    } else if (slice.tid >= kFirstTensorTrack &&
               absl::StartsWith(name, "NEGOTIATE_")) {
      rank.negotiations.push_back(interval);
    } else if (slice.tid == kUserTrack && name == kWaitForGradients) {
      rank.waits.push_back(interval);
    }
  }
  return ranks;
}

}  // namespace

bool IsTick(const Trace& trace, const TraceSlice& slice) {
  if (slice.duration_ns > 0 || trace.processes.at(slice.pid).is_rank) {
    return false;
  }
  const std::string& name = trace.NameOf(slice);
  return name == "CYCLE_START" ||
         (!name.empty() &&
          std::all_of(name.begin(), name.end(), absl::ascii_isdigit));
}

double NameSummary::average_wall_ns() const {
  if (occurrences == 0) return 0;
  return static_cast<double>(wall_ns) / static_cast<double>(occurrences);
}

std::vector<int64_t> SelfTimesNs(const Trace& trace) {
  const std::vector<TraceSlice>& slices = trace.slices;
  std::vector<int64_t> self_ns(slices.size());
  std::vector<size_t> open;  // each contains the next
  for (std::vector<size_t>& track : SlicesByTrack(slices)) {
    // Parents come before their children.
    const auto comes_before = [&slices](size_t a, size_t b) {
      if (slices[a].start_ns != slices[b].start_ns) {
        return slices[a].start_ns < slices[b].start_ns;
      }
      const int64_t a_end_ns = EndNs(slices[a]);
      const int64_t b_end_ns = EndNs(slices[b]);
      return a_end_ns != b_end_ns ? a_end_ns > b_end_ns : a < b;
    };
    if (!std::is_sorted(track.begin(), track.end(), comes_before)) {
      std::sort(track.begin(), track.end(), comes_before);
    }
    open.clear();
    for (const size_t slice : track) {
      const int64_t end_ns = EndNs(slices[slice]);
      while (!open.empty() && EndNs(slices[open.back()]) < end_ns) {
        open.pop_back();
      }
      const int64_t duration_ns = slices[slice].duration_ns;
      self_ns[slice] = duration_ns;
      if (!open.empty()) {
        int64_t& parents_ns = self_ns[open.back()];
        parents_ns = Difference(parents_ns, duration_ns);
      }
      open.push_back(slice);
    }
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

std::optional<TimeShares> SharesOf(const Trace& trace) {
  TimeShares sums;
  double exposed = 0;
  bool waits_are_recorded = false;
  for (const auto& [pid, rank] : EventsByRank(trace)) {
    const auto span_ns = static_cast<double>(rank.span_ns());
    if (span_ns <= 0) continue;
    const int64_t buckets_ns = CoveredNs(UnionOf(rank.buckets));
    std::vector<Interval> either = rank.negotiations;
    either.insert(either.end(), rank.buckets.begin(), rank.buckets.end());
    const int64_t either_ns = CoveredNs(UnionOf(std::move(either)));
    sums.negotiating += static_cast<double>(either_ns - buckets_ns) / span_ns;
    sums.communicating += static_cast<double>(buckets_ns) / span_ns;
    exposed += static_cast<double>(CoveredNs(UnionOf(rank.waits))) / span_ns;
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
