// The results of a sweep as rows: speeds, speed-up, efficiency, shares of time.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/html_page.h"
#include "support/statistics.h"
#include "timeline/diagnose/trace_summary.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

// What N is in an efficiency: nodes if a world has several; cores in strong
// scaling if rows of a series have ranks with different numbers of threads, so
// that twice the ranks are not twice the cores; else ranks.
enum class Counted { kRanks, kNodes, kCores };

// "ranks", "nodes", "cores (ranks x threads)".
std::string CountedName(Counted counted);

// One configuration.
struct Row {
  Configuration configuration;
  int n = 1;
  // Of the runs that succeeded, or of all if none did.
  std::set<int> threads;  // of a rank; empty: not known
  // That compute: ranks x threads; 0: not known.
  int cores() const {
    return threads.size() == 1 ? configuration.ranks() * *threads.begin() : 0;
  }
  bool oversubscribed = false;
  std::vector<Sample> samples;  // failed ones, too
  int failures = 0;

  std::optional<double> items_per_second;     // median
  std::optional<support::Interval> interval;  // 95 %, of the median
  std::optional<double> epoch_seconds;
  // Against the reference of its series, the rows of the same setting, mapping
  // and threads that were asked for (and ranks per node, where N counts nodes):
  // that of the smallest N, and of several such rows the fastest. nullopt where
  // ranks and threads are more than the cores: that is no scaling; where runs
  // had different numbers of threads; and where N counts cores and they are not
  // known.
  std::optional<double> speed_up;
  std::optional<double> efficiency;
  // 95 %, of the efficiency; nullopt for a reference, which is 1 by definition,
  // and where the row or its reference has one run alone.
  std::optional<support::Interval> efficiency_interval;
  int base_n = 1;             // the reference's
  bool is_reference = false;  // of its series
  // Of the traces of all samples that have one.
  std::optional<timeline::TimeShares> shares;
};

struct ScalingTable {
  std::string name;
  std::string items = "items";   // what speeds count
  support::Properties settings;  // of the sweep, for people
  Scaling scaling = STRONG;
  Counted counted = Counted::kRanks;
  std::vector<Row> rows;  // in the SPEC's order

  // Rows that scale with each other, by their index, N ascending; without those
  // that have no efficiency.
  std::vector<std::vector<size_t>> Groups() const;
  // "strong: T1/(N*TN)", of the same work for all; "weak: T1/TN", of work that
  // grows with N; T1 the time of the smallest N that was measured.
  std::string EfficiencyKind() const;
  // "strong: T1/(N*TN), N = ranks".
  std::string EfficiencyTitle() const;
};

// Of a trace's file, nullopt if it says nothing.
using ShareReader =
    std::function<std::optional<timeline::TimeShares>(const std::string&)>;

// Reads the traces in `directory` with timeline::ReadTrace.
ShareReader ReadSharesBelow(const std::string& directory);

absl::StatusOr<ScalingTable> MakeTable(const Results& results,
                                       const ShareReader& read_shares);

}  // namespace hvdlite::scaling_sweep
