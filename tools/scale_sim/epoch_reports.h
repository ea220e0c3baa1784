// What a fit found, and how well it predicts; and predictions: as text and as
// JSON.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tools/scale_sim/fit.h"
#include "tools/scale_sim/prediction.h"

namespace hvdlite::scale_sim {

struct FitReport {
  EpochTable table;
  FitOptions options;
  std::vector<ColumnFit> fits;
  // One per fit, or none: over all choices of as many rows.
  std::vector<SubsetErrors> subsets;
  double bound = 0.15;  // that the medians of subsets are counted against
};

// The computation of a rank in cores: how many cores' worth of the speed it has
// that the same set-up ("Fujitsu" of "Fujitsu/4") reaches per core with one
// process per node. nullopt: `fit` is that one, or it was not fitted.
std::optional<double> CoresWorth(const FitReport& report, const ColumnFit& fit);

// Markdown: a table of parameters and errors, and one of all points, in which
// those that were fitted have a star.
void PrintFit(const FitReport& report, std::ostream& out);
std::string FitToJson(const FitReport& report);

struct ColumnPrediction {
  ColumnFit fit;
  std::vector<Prediction> predictions;
};

struct PredictionReport {
  EpochTable table;
  HvdliteAssumptions assumptions;
  std::vector<ColumnPrediction> columns;
};

// Per column the assumptions, and a Markdown table with a line per system and
// number of nodes.
void PrintPredictions(const PredictionReport& report, std::ostream& out);
std::string PredictionsToJson(const PredictionReport& report);

}  // namespace hvdlite::scale_sim
