#include "timeline/diagnose/step_analysis.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "timeline/diagnose/intervals.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {
namespace {

// A bucket on one rank, used to divide the waits into parts.
struct BucketSpan {
  int64_t start_ns;
  int64_t end_ns;
  int64_t ready_everywhere_ns;
  int64_t gate_ns;
  int64_t copy_ns;
  int64_t data_ns;
};

// What one rank recorded of its application.
struct RankSpans {
  std::vector<RankStep> steps;
  std::vector<Interval> waits;
  std::vector<Interval> input;
  std::vector<Interval> other;
  // For profiles, which record no waits: operators and loading, and the same
  // with collectives.
  std::vector<Interval> busy;
  std::vector<Interval> busy_or_running;
  std::vector<BucketSpan> buckets;
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();

  void Cover(int64_t start_ns, int64_t end_ns) {
    first_ns = std::min(first_ns, start_ns);
    last_ns = std::max(last_ns, end_ns);
  }
};

// The application waited in [from, to) and no bucket ran. Divides this time at
// the moment when the next bucket was ready on all ranks.
void AddGap(int64_t from, int64_t to, int64_t ready_ns, PartTimes* parts) {
  if (from >= to) return;
  const int64_t at = std::clamp(ready_ns, from, to);
  At(*parts, StepPart::kWaitForRanks) += at - from;
  At(*parts, StepPart::kWaitForProgress) += to - at;
}

// Adds the part of [from, to) in which the bucket ran. Its phases are, in this
// order: the gate, copies in, the data plane, copies out.
void AddBucket(const BucketSpan& bucket, int64_t from, int64_t to,
               PartTimes* parts) {
  const auto add = [&](int64_t start_ns, int64_t end_ns, StepPart part) {
    At(*parts, part) +=
        std::max<int64_t>(0, std::min(end_ns, to) - std::max(start_ns, from));
  };
  const int64_t gate_ns =
      std::clamp<int64_t>(bucket.gate_ns, 0, bucket.end_ns - bucket.start_ns);
  const int64_t passed_ns = bucket.start_ns + gate_ns;
  AddGap(std::max(bucket.start_ns, from), std::min(passed_ns, to),
         bucket.ready_everywhere_ns, parts);
  const int64_t copy_ns =
      std::clamp<int64_t>(bucket.copy_ns, 0, bucket.end_ns - passed_ns);
  const int64_t packed_ns = passed_ns + copy_ns / 2;
  const int64_t unpacking_ns = bucket.end_ns - (copy_ns - copy_ns / 2);
  add(passed_ns, packed_ns, StepPart::kCopies);
  add(packed_ns, unpacking_ns, StepPart::kDataPlane);
  add(unpacking_ns, bucket.end_ns, StepPart::kCopies);
}

// Divides [from, to), in which the application waited, by what it waited for.
void AddWait(const std::vector<BucketSpan>& buckets, int64_t from, int64_t to,
             PartTimes* parts) {
  auto bucket = std::lower_bound(
      buckets.begin(), buckets.end(), from,
      [](const BucketSpan& span, int64_t at) { return span.end_ns <= at; });
  int64_t at = from;
  for (; bucket != buckets.end() && bucket->start_ns < to; ++bucket) {
    AddGap(at, std::min(bucket->start_ns, to), bucket->ready_everywhere_ns,
           parts);
    AddBucket(*bucket, std::max(at, bucket->start_ns), to, parts);
    at = std::max(at, std::min(bucket->end_ns, to));
  }
  // All buckets are done; the thread only has to wake up.
  AddGap(at, to, at, parts);
}

void FindParts(const RankSpans& rank, const std::vector<Interval>& running,
               RankStep* step, int64_t end_ns) {
  const int64_t start_ns = step->start_ns;
  PartTimes& parts = step->parts;
  const auto first = std::lower_bound(
      rank.waits.begin(), rank.waits.end(), start_ns,
      [](const Interval& wait, int64_t at) { return wait.second < at; });
  int64_t hidden_ns = CoveredNs(running, start_ns, end_ns);
  for (auto wait = first; wait != rank.waits.end() && wait->first < end_ns;
       ++wait) {
    const int64_t from = std::max(start_ns, wait->first);
    const int64_t to = std::min(end_ns, wait->second);
    AddWait(rank.buckets, from, to, &parts);
    hidden_ns -= CoveredNs(running, from, to);
  }
  const int64_t alone_ns = CoveredNs(rank.busy_or_running, start_ns, end_ns) -
                           CoveredNs(rank.busy, start_ns, end_ns);
  At(parts, StepPart::kDataPlane) += alone_ns;
  hidden_ns -= alone_ns;
  step->hidden_ns = std::max<int64_t>(hidden_ns, 0);
  // A wait within an evaluation counts as evaluation.
  int64_t rest_ns = end_ns - start_ns - TotalNs(parts);
  const auto take = [&](const std::vector<Interval>& spans, StepPart part) {
    const int64_t taken_ns =
        std::min(rest_ns, CoveredNs(spans, start_ns, end_ns));
    At(parts, part) = taken_ns;
    rest_ns -= taken_ns;
  };
  take(rank.input, StepPart::kInput);
  take(rank.other, StepPart::kOther);
  At(parts, StepPart::kComputing) = rest_ns;
}

bool IsInput(absl::string_view name) {
  return name == "LOAD_BATCH" || absl::StartsWith(name, "enumerate(DataLoader");
}

bool IsOther(absl::string_view name) {
  return name == "EVALUATE" || name == "COMMIT" || name == "CHECKPOINT";
}

// Communication in traces of PyTorch's profiler.
bool IsProfilersCommunication(absl::string_view name) {
  return absl::StartsWith(name, "gloo:") || absl::StartsWith(name, "mpi:") ||
         absl::StartsWith(name, "nccl:") || absl::StartsWith(name, "ccl:");
}

// Operators run within such an event, collectives do not.
bool IsProfilersOperator(absl::string_view name) {
  return absl::StartsWith(name, "aten::") ||
         absl::StartsWith(name, "autograd::engine::");
}

// Sorts slices by the activity of each process's application.
class SpanCollector {
 public:
  explicit SpanCollector(const Trace& trace) : trace_(trace) {}

  void Add(const TraceSlice& slice) {
    const std::string& name = trace_.NameOf(slice);
    RankSpans& rank = ranks_[slice.pid];
    rank.Cover(slice.start_ns, slice.end_ns());
    const Interval interval = {slice.start_ns, slice.end_ns()};
    const bool is_rank = trace_.processes.at(slice.pid).is_rank;
    if (is_rank ? slice.tid == kStepTrack
                : absl::StartsWith(name, "ProfilerStep#")) {
      const SliceDetails& details = trace_.DetailsOf(slice);
      const int64_t number = details.step;
      rank.steps.push_back(
          {.rank = slice.pid,
           .number = number >= 0 ? number
                                 : static_cast<int64_t>(rank.steps.size()) + 1,
           .start_ns = slice.start_ns,
           .parts = {slice.duration_ns},
           .work = details.work,
           .cpu_ns = details.cpu_us < 0 ? -1 : details.cpu_us * 1000});
      from_profiler_ |= !is_rank;
    } else if (is_rank && slice.tid != kUserTrack) {
      return;
    } else if (is_rank && (name == kWaitForGradients || name == "WAIT")) {
      rank.waits.push_back(interval);
    } else if (!is_rank && IsProfilersCommunication(name)) {
      rank.buckets.push_back({.start_ns = interval.first,
                              .end_ns = interval.second,
                              .ready_everywhere_ns = interval.first,
                              .gate_ns = 0,
                              .copy_ns = 0,
                              .data_ns = slice.duration_ns});
    } else if (IsInput(name)) {
      rank.input.push_back(interval);
      if (!is_rank) rank.busy.push_back(interval);
    } else if (!is_rank && IsProfilersOperator(name)) {
      rank.busy.push_back(interval);
    } else if (IsOther(name)) {
      rank.other.push_back(interval);
    }
  }

  std::map<int64_t, RankSpans>& ranks() { return ranks_; }
  bool from_profiler() const { return from_profiler_; }

 private:
  const Trace& trace_;
  std::map<int64_t, RankSpans> ranks_;
  bool from_profiler_ = false;
};

// The time from the first to the last step of each rank.
std::map<int64_t, Interval> WindowsOf(const std::vector<RankStep>& steps) {
  std::map<int64_t, Interval> windows;
  for (const RankStep& step : steps) {
    const auto [window, added] =
        windows.try_emplace(step.rank, Interval{step.start_ns, step.end_ns()});
    if (added) continue;
    window->second.first = std::min(window->second.first, step.start_ns);
    window->second.second = std::max(window->second.second, step.end_ns());
  }
  return windows;
}

void CountBuckets(const std::vector<RankStep>& steady, StepAnalysis* analysis) {
  if (steady.empty()) return;
  const int64_t rank = steady.front().rank;
  int64_t steps = 0;
  int64_t end_ns = steady.front().start_ns;
  for (const RankStep& step : steady) {
    if (step.rank != rank) continue;
    ++steps;
    end_ns = std::max(end_ns, step.end_ns());
  }
  for (const Bucket& bucket : analysis->buckets) {
    const RankBucket& first = bucket.ranks.front();
    if (first.rank != rank || first.start_ns < steady.front().start_ns ||
        first.start_ns >= end_ns) {
      continue;
    }
    ++analysis->buckets_per_step;
    analysis->bytes_per_step += static_cast<double>(bucket.bytes);
  }
  analysis->buckets_per_step /= static_cast<double>(steps);
  analysis->bytes_per_step /= static_cast<double>(steps);
}

// Collects the spans of the buckets of each rank, sorted.
void ShareBuckets(const std::vector<Bucket>& buckets,
                  std::map<int64_t, RankSpans>* ranks) {
  for (const Bucket& bucket : buckets) {
    for (const RankBucket& rank : bucket.ranks) {
      (*ranks)[rank.rank].buckets.push_back(
          {rank.start_ns, rank.end_ns, bucket.ready_everywhere_ns, rank.gate_ns,
           rank.copy_ns, rank.data_ns});
    }
  }
  for (auto& [rank, spans] : *ranks) {
    std::sort(spans.buckets.begin(), spans.buckets.end(),
              [](const BucketSpan& a, const BucketSpan& b) {
                return a.start_ns < b.start_ns;
              });
  }
}

}  // namespace

absl::string_view NameOf(StepPart part) {
  switch (part) {
    case StepPart::kComputing:
      return "computing";
    case StepPart::kInput:
      return "input";
    case StepPart::kOther:
      return "evaluation, commits";
    case StepPart::kWaitForRanks:
      return "waiting for ranks";
    case StepPart::kWaitForProgress:
      return "waiting for progress";
    case StepPart::kDataPlane:
      return "data plane";
    case StepPart::kCopies:
      return "copies";
  }
  return "?";
}

int64_t TotalNs(const PartTimes& times) {
  return std::accumulate(times.begin(), times.end(), int64_t{0});
}

int64_t ExposedNs(const PartTimes& times) {
  return std::accumulate(
      times.begin() + static_cast<ptrdiff_t>(StepPart::kWaitForRanks),
      times.end(), int64_t{0});
}

std::vector<absl::Span<const RankStep>> ByNumber(
    absl::Span<const RankStep> steps) {
  std::vector<absl::Span<const RankStep>> groups;
  while (!steps.empty()) {
    const auto end =
        std::find_if(steps.begin(), steps.end(), [&](const RankStep& step) {
          return step.number != steps.front().number;
        });
    groups.push_back(steps.first(static_cast<size_t>(end - steps.begin())));
    steps.remove_prefix(groups.back().size());
  }
  return groups;
}

std::map<int64_t, PartTimes> PartsByRank(const std::vector<RankStep>& steps) {
  std::map<int64_t, PartTimes> ranks;
  for (const RankStep& step : steps) {
    PartTimes& sums = ranks[step.rank];
    for (size_t i = 0; i < kStepParts; ++i) sums[i] += step.parts[i];
  }
  return ranks;
}

PartTimes SumOfParts(const std::vector<RankStep>& steps) {
  PartTimes sums = {};
  for (const RankStep& step : steps) {
    for (size_t i = 0; i < kStepParts; ++i) sums[i] += step.parts[i];
  }
  return sums;
}

std::vector<RankStep> StepAnalysis::SteadySteps() const {
  std::vector<RankStep> steady;
  for (const RankStep& step : steps) {
    if (step.number > 1) steady.push_back(step);
  }
  const bool others_are_left =
      !steady.empty() && steady.back().number > steady.front().number;
  return others_are_left ? steady : steps;
}

std::optional<StartUp> FindStartUp(const StepAnalysis& analysis) {
  if (analysis.source == StepSource::kWhole || analysis.steps.empty()) {
    return std::nullopt;
  }
  const RankStep& begin = analysis.steps.front();
  if (begin.number != 1 || begin.count != 1) return std::nullopt;
  StartUp start = {.start_ns = begin.start_ns, .end_ns = begin.start_ns};
  int64_t run_end_ns = begin.start_ns;
  for (const RankStep& step : analysis.steps) {
    start.start_ns = std::min(start.start_ns, step.start_ns);
    run_end_ns = std::max(run_end_ns, step.end_ns());
    if (step.number == 1) start.end_ns = std::max(start.end_ns, step.end_ns());
  }
  const std::vector<RankStep> steady = analysis.SteadySteps();
  const int64_t run_ns = run_end_ns - start.start_ns;
  if (run_ns <= 0) return std::nullopt;
  start.step_ns = static_cast<double>(TotalNs(SumOfParts(steady))) /
                  static_cast<double>(steady.size());
  start.share =
      (static_cast<double>(start.end_ns - start.start_ns) - start.step_ns) /
      static_cast<double>(run_ns);
  return start;
}

StepAnalysis AnalyzeSteps(const Trace& trace) {
  StepAnalysis analysis;
  SpanCollector spans(trace);
  for (const TraceSlice& slice : trace.slices) spans.Add(slice);
  analysis.buckets = FindBuckets(trace);
  ShareBuckets(analysis.buckets, &spans.ranks());

  bool recorded = false;
  for (const auto& [pid, rank] : spans.ranks()) {
    recorded |= !rank.steps.empty();
  }
  if (recorded) {
    analysis.source =
        spans.from_profiler() ? StepSource::kProfiler : StepSource::kRecorded;
  }
  const bool is_of_one_rank =
      trace.profiled.has_value() &&
      std::count_if(spans.ranks().begin(), spans.ranks().end(),
                    [](const auto& process) {
                      return !process.second.steps.empty();
                    }) == 1;
  for (auto& [pid, rank] : spans.ranks()) {
    if (!recorded && rank.first_ns < rank.last_ns) {
      rank.steps.push_back({.rank = pid,
                            .number = 1,
                            .start_ns = rank.first_ns,
                            .parts = {rank.last_ns - rank.first_ns}});
    }
    analysis.knows_waits |= !rank.waits.empty();
    rank.waits = UnionOf(std::move(rank.waits));
    rank.input = UnionOf(std::move(rank.input));
    rank.other = UnionOf(std::move(rank.other));
    std::vector<Interval> running;
    for (const BucketSpan& bucket : rank.buckets) {
      running.emplace_back(bucket.start_ns, bucket.end_ns);
    }
    running = UnionOf(std::move(running));
    if (analysis.source == StepSource::kProfiler) {
      rank.busy = UnionOf(std::move(rank.busy));
      rank.busy_or_running = rank.busy;
      rank.busy_or_running.insert(rank.busy_or_running.end(), running.begin(),
                                  running.end());
      rank.busy_or_running = UnionOf(std::move(rank.busy_or_running));
    }
    std::sort(rank.steps.begin(), rank.steps.end(),
              [](const RankStep& a, const RankStep& b) {
                return a.start_ns < b.start_ns;
              });
    int64_t until_ns = std::numeric_limits<int64_t>::min();
    for (RankStep& step : rank.steps) {
      const int64_t end_ns = step.end_ns();
      // In a damaged file, steps may overlap; their sums would be wrong.
      if (step.start_ns < until_ns) continue;
      until_ns = end_ns;
      step.parts = {};
      FindParts(rank, running, &step, end_ns);
      if (is_of_one_rank) step.rank = trace.profiled->rank;
      analysis.steps.push_back(step);
    }
  }
  std::sort(analysis.steps.begin(), analysis.steps.end(),
            [](const RankStep& a, const RankStep& b) {
              return std::tie(a.number, a.rank) < std::tie(b.number, b.rank);
            });
  const std::vector<RankStep> steady = analysis.SteadySteps();
  analysis.resources = FindResourceUse(trace, WindowsOf(steady));
  CountBuckets(steady, &analysis);
  return analysis;
}

}  // namespace hvdlite::timeline
