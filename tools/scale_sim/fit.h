// Fitting a HorovodModel to some points of a table, to predict the others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/scale_sim/epoch_table.h"
#include "tools/scale_sim/horovod.h"

namespace hvdlite::scale_sim {

// A parameter of a HorovodModel that a fit can find: positive, and searched on
// a logarithmic scale.
struct FitParameter {
  absl::string_view name;  // as in flags and reports; with the unit
  double start = 0;        // where the search begins
  double lower = 0;        // stands for 0
  double upper = 0;
  double& (*of)(HorovodModel& model) = nullptr;
};

// image-ms, starved-share, software-ns-per-byte, first-batch-share, jitter.
const std::vector<FitParameter>& FitParameters();

// nullptr: there is none of this name.
const FitParameter* FindFitParameter(absl::string_view name);

struct Minimum {
  std::vector<double> point;
  double value = 0;
};

// A local minimum of `function` near `start` (one entry or more), found without
// derivatives (Nelder and Mead, "A Simplex Method for Function Minimization",
// 1965; standard coefficients). `edge`: of the first simplex, in each
// direction. It ends when the simplex has values that differ by less than
// `tolerance`, or after `iterations`. Deterministic.
Minimum NelderMead(
    const std::function<double(const std::vector<double>&)>& function,
    const std::vector<double>& start, double edge, double tolerance,
    int iterations);

// The rows that are fitted if nobody names others: every other one, but not the
// last; of fewer than six rows all but the last.
std::vector<int> DefaultFitNodes(const EpochTable& table);

struct FitOptions {
  // Numbers of nodes whose epoch times are fitted. What they were fitted to is
  // never part of a reported error.
  std::vector<int> fit_nodes;
  // Names of FitParameters(), the most important first. They are fitted in this
  // order as long as there are points for them: n points, n parameters at most.
  // starved-share is left out where every fitted point has more than one rank,
  // since there it cannot be told from image-ms.
  std::vector<std::string> parameters;
  // What the parameters that are not fitted are. ranks_per_node is the
  // column's.
  HorovodModel model;
};

struct FittedPoint {
  int nodes = 0;
  double measured_seconds = 0;
  double predicted_seconds = 0;
  bool fitted = false;

  // Of the prediction, as a part of what was measured.
  double error() const { return predicted_seconds / measured_seconds - 1; }
};

// What the fit's errors are where it is asked for `factor` times as many nodes
// as it was fitted to.
struct Extrapolation {
  double factor = 1;
  double max_error = 0;  // magnitude
  int rows = 0;          // that were predicted from so far away
};

struct ColumnFit {
  EpochColumn column;
  std::vector<std::string> parameters;  // that were fitted
  HorovodModel model;                   // with them
  std::vector<FittedPoint> points;
  // Magnitudes, of the points that were held out.
  double median_error = 0;
  double max_error = 0;
  // Of other fits: to the first three rows, the first four, ..., each asked for
  // the rows behind these. Factors ascend; empty for fewer than four rows.
  std::vector<Extrapolation> beyond;
};

// How far from what was fitted a number of nodes is.
struct Reach {
  double factor = 0;  // by the most nodes that were fitted; 0: nothing was
  // The largest error that was found as far away or, between the rows that were
  // fitted, among those that were not. nullopt: nothing was measured there.
  std::optional<double> tested_error;
};
Reach ReachOf(const ColumnFit& fit, int nodes);

// Least squares of the logarithms of the column's times at `fit_nodes`. Errors:
// nodes that the table lacks, fitted twice, or none left to predict; parameters
// that are unknown.
absl::StatusOr<ColumnFit> FitColumn(const EpochTable& table,
                                    const EpochColumn& column,
                                    const FitOptions& options);

// Medians and maxima of the held-out errors' magnitudes, over ways to choose
// `size` of the table's rows to fit.
struct SubsetErrors {
  int subsets = 0;
  double median_of_medians = 0;
  double worst_median = 0;
  double median_of_maxima = 0;
  double worst_maximum = 0;
  int medians_within = 0;  // subsets whose median is at most `bound`
};
struct Subsets {
  SubsetErrors all;
  // Of those from which every parameter can be told that any of them tells:
  // starved-share takes a row of one rank.
  SubsetErrors complete;
};
// `on_fit` is told of each.
absl::StatusOr<Subsets> ErrorsOfSubsets(
    const EpochTable& table, const EpochColumn& column, FitOptions options,
    int size, double bound, const std::function<void()>& on_fit = {});

}  // namespace hvdlite::scale_sim
