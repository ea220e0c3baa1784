// Fitting a HorovodModel to some points of a table, to predict the others.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/epoch_table.h"
#include "tools/scale_sim/horovod_model.h"

namespace hvdlite::scale_sim {

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

struct ColumnFit {
  EpochColumn column;
  std::vector<std::string> parameters;  // that were fitted
  HorovodModel model;                   // with them
  std::vector<FittedPoint> points;
  // Magnitudes, of the points that were held out.
  double median_error = 0;
  double max_error = 0;
};

// Least squares of the logarithms of the column's times at `fit_nodes`. Errors:
// nodes that the table lacks, fitted twice, or none left to predict; parameters
// that are unknown.
absl::StatusOr<ColumnFit> FitColumn(const EpochTable& table,
                                    const EpochColumn& column,
                                    const FitOptions& options);

// Median and maximum of the held-out errors' magnitudes, over all ways to
// choose `size` of the table's rows to fit.
struct SubsetErrors {
  int subsets = 0;
  double median_of_medians = 0;
  double worst_median = 0;
  int medians_within = 0;  // subsets whose median is at most `bound`
};
absl::StatusOr<SubsetErrors> ErrorsOfSubsets(const EpochTable& table,
                                             const EpochColumn& column,
                                             FitOptions options, int size,
                                             double bound);

}  // namespace hvdlite::scale_sim
