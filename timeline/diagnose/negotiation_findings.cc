// Findings for Horovod's timelines. They record no steps: each process is a
// tensor, and a tick inside its NEGOTIATE_ event marks when a rank was ready.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/intervals.h"
#include "timeline/diagnose/trace_summary.h"

namespace hvdlite::timeline {
namespace {

// A rank was ready with one tensor at this time.
struct Tick {
  int64_t time_ns;
  std::string rank;
};

// Sums over the negotiations that have ticks.
struct Negotiations {
  int64_t all_ns = 0;
  int64_t after_last_ns = 0;               // while all ranks were ready
  std::map<std::string, int64_t> last_ns;  // waits, by the rank that was last
  int64_t count = 0;

  void Add(const TraceSlice& slice, const std::vector<Tick>& ticks) {
    const auto at = [](const Tick& tick, int64_t time_ns) {
      return tick.time_ns < time_ns;
    };
    const auto first =
        std::lower_bound(ticks.begin(), ticks.end(), slice.start_ns, at);
    const auto end =
        std::lower_bound(first, ticks.end(), slice.end_ns() + 1, at);
    if (end - first < 2) return;
    const Tick& last = *(end - 1);
    all_ns += slice.duration_ns;
    after_last_ns += slice.end_ns() - last.time_ns;
    last_ns[last.rank] += last.time_ns - first->time_ns;
    ++count;
  }
};

}  // namespace

std::vector<Finding> FindNegotiationCauses(const Trace& trace) {
  std::vector<Interval> negotiating;
  std::vector<Interval> reducing;
  std::map<int64_t, std::vector<Tick>> ticks;  // by tensor
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t end_ns = std::numeric_limits<int64_t>::min();
  const TraceSlice* longest = nullptr;
  for (const TraceSlice& slice : trace.slices) {
    const std::string& name = trace.NameOf(slice);
    if (IsTick(trace, slice)) {
      ticks[slice.pid].push_back({slice.start_ns, name});
      continue;
    }
    first_ns = std::min(first_ns, slice.start_ns);
    end_ns = std::max(end_ns, slice.end_ns());
    if (!absl::StartsWith(name, "NEGOTIATE_")) {
      reducing.emplace_back(slice.start_ns, slice.end_ns());
      continue;
    }
    negotiating.emplace_back(slice.start_ns, slice.end_ns());
    if (longest == nullptr || slice.duration_ns > longest->duration_ns) {
      longest = &slice;
    }
  }
  if (longest == nullptr || end_ns <= first_ns) return {};
  for (auto& [pid, of_tensor] : ticks) {
    std::stable_sort(
        of_tensor.begin(), of_tensor.end(),
        [](const Tick& a, const Tick& b) { return a.time_ns < b.time_ns; });
  }
  Negotiations sums;
  for (const TraceSlice& slice : trace.slices) {
    if (!absl::StartsWith(trace.NameOf(slice), "NEGOTIATE_")) continue;
    const auto of_tensor = ticks.find(slice.pid);
    if (of_tensor != ticks.end()) sums.Add(slice, of_tensor->second);
  }

  const int64_t reducing_ns = CoveredNs(UnionOf(reducing));
  reducing.insert(reducing.end(), negotiating.begin(), negotiating.end());
  const int64_t alone_ns =
      CoveredNs(UnionOf(std::move(reducing))) - reducing_ns;
  Finding finding = {
      .cause = "negotiation",
      .title = "Tensors are negotiated while none is reduced",
      .evidence = {absl::StrFormat(
          "%.1f ms of %.1f ms; tensors are reduced in %.1f ms. Ranks may "
          "compute meanwhile: this trace does not show it",
          static_cast<double>(alone_ns) / 1e6,
          static_cast<double>(end_ns - first_ns) / 1e6,
          static_cast<double>(reducing_ns) / 1e6)},
      .remedy =
          "compare with a trace of a fast run (timeline_viewer diff); "
          "then run hvdlite_doctor on each host",
      .share = static_cast<double>(alone_ns) /
               static_cast<double>(end_ns - first_ns),
      .of_run = true,
      .rank = -1,
      .start_ns = longest->start_ns,
      .end_ns = longest->end_ns()};
  if (finding.share < 0.1) return {};
  if (sums.all_ns <= 0) return {finding};
  const auto all = static_cast<double>(sums.all_ns);
  const double after = static_cast<double>(sums.after_last_ns) / all;
  const auto last = std::max_element(
      sums.last_ns.begin(), sums.last_ns.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  finding.evidence.push_back(absl::StrFormat(
      "in %.0f %% of the negotiation time all ranks were ready; in %.0f %% the "
      "others waited for rank %s",
      after * 100, static_cast<double>(last->second) / all * 100, last->first));
  if (after > 0.5) {
    finding.title =
        "All ranks are ready, but their background threads are late";
    finding.remedy =
        "leave a core to the background thread (a smaller OMP_NUM_THREADS), "
        "let waiting threads sleep (OMP_WAIT_POLICY=passive), and check "
        "HOROVOD_CYCLE_TIME";
  } else if (static_cast<double>(last->second) > 0.5 * all) {
    finding.title =
        absl::StrCat("Rank ", last->first, " is ready later than the others");
    finding.remedy = absl::StrCat("check the host of rank ", last->first,
                                  ": its load, binding and input");
  }
  return {finding};
}

}  // namespace hvdlite::timeline
