// ScalingTable: the results of a sweep as rows with speeds, speed-up,
// efficiency and shares of time.
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

// What N counts in an efficiency: nodes if a world has several; cores in strong
// scaling if the rows of a series have different numbers of threads per rank
// (then twice the ranks are not twice the cores); otherwise ranks.
enum class Counted { kRanks, kNodes, kCores };

// Returns "ranks", "nodes" or "cores (ranks x threads)".
std::string CountedName(Counted counted);

// One configuration.
struct Row {
  Configuration configuration;
  int n = 1;
  // Of the successful runs, or of all runs if none succeeded.
  std::set<int> threads;  // per rank; empty: not known
  // Cores that compute: ranks x threads; 0: not known.
  int cores() const {
    return threads.size() == 1 ? configuration.ranks() * *threads.begin() : 0;
  }
  bool oversubscribed = false;
  std::vector<Sample> samples;  // includes failed runs
  int failures = 0;

  std::optional<double> items_per_second;     // median
  std::optional<support::Interval> interval;  // 95 %, of the median
  std::optional<double> epoch_seconds;
  // Compared with the reference of the row's series. A series has the rows with
  // the same setting, mapping and requested threads (and ranks per node, if N
  // counts nodes). Its reference is the row with the smallest N, and the
  // fastest of several such rows. nullopt if there are more ranks and threads
  // than cores, if the runs had different numbers of threads, or if N counts
  // cores and they are not known.
  std::optional<double> speed_up;
  std::optional<double> efficiency;
  // The efficiency's 95 % interval; nullopt for a reference, whose efficiency
  // is 1 by definition, and if the row or its reference has only one run.
  std::optional<support::Interval> efficiency_interval;
  int base_n = 1;             // the reference's
  bool is_reference = false;  // of its series
  // The mean over the traces of all samples.
  std::optional<timeline::TimeShares> shares;
};

struct ScalingTable {
  std::string name;
  std::string items = "items";   // what speeds count
  support::Properties settings;  // of the sweep, for people
  Scaling scaling = STRONG;
  Counted counted = Counted::kRanks;
  std::vector<Row> rows;  // in the order of the spec

  // Returns the series as indices of rows, with ascending N. Rows without an
  // efficiency are left out.
  std::vector<std::vector<size_t>> Groups() const;
  // "strong: T1/(N*TN)" if the work is always the same; "weak: T1/TN" if it
  // grows with N. T1 is the time of the smallest N that was measured.
  std::string EfficiencyKind() const;
  // "strong: T1/(N*TN), N = ranks".
  std::string EfficiencyTitle() const;
};

// Returns the shares of a trace file; nullopt if it has none.
using ShareReader =
    std::function<std::optional<timeline::TimeShares>(const std::string&)>;

// Reads the traces in `directory` with timeline::ReadTrace.
ShareReader ReadSharesBelow(const std::string& directory);

absl::StatusOr<ScalingTable> MakeTable(const Results& results,
                                       const ShareReader& read_shares);

}  // namespace hvdlite::scaling_sweep
