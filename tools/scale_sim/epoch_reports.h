// What a fit found, how well it predicts, and how far that was tested; and
// predictions: as text and as JSON.
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
  std::vector<Subsets> subsets;
  double bound = 0.15;  // that the medians of subsets are counted against
};

// The computation of a rank in cores: how many cores' worth of the speed it has
// that the same set-up ("Fujitsu" of "Fujitsu/4") reaches per core with one
// process per node. nullopt: `fit` is that one, or it was not fitted.
std::optional<double> CoresWorth(const FitReport& report, const ColumnFit& fit);

// Whether the fit has found the parameter, not the user.
bool IsFitted(const ColumnFit& fit, const FitParameter& parameter);

// "1, 4, 16": of the points that were fitted, or of the others.
std::string NodesText(const ColumnFit& fit, bool fitted);

// "2 times 5.0 %, 4 times 9.1 %"; "" if there is none.
std::string BeyondText(const ColumnFit& fit);

// "16 times beyond what was fitted; never tested so far away".
std::string ReachText(const Reach& reach);

// A table of parameters and errors of the rows that were not fitted, one of all
// points, the errors far away, and those of other choices of rows.
void PrintFit(const FitReport& report, std::ostream& out);
std::string FitToJson(const FitReport& report);

struct ColumnPrediction {
  ColumnFit fit;
  std::vector<Prediction> predictions;
};

struct PredictionReport {
  EpochTable table;
  std::vector<HvdliteVariant> variants;  // the first has equal settings
  std::vector<ColumnPrediction> columns;
};

// What predictions rest on: sentences, each with the flag that changes it.
struct PredictionAssumptions {
  std::vector<std::string> both;
  std::vector<std::string> horovod;
  std::vector<std::string> hvdlite;  // with equal settings
  std::vector<std::string> added;    // by each variant behind the first
};
PredictionAssumptions AssumptionsOf(const PredictionReport& report,
                                    const ColumnFit& fit);

// Per column the assumptions, a table of strong and one of weak scaling with a
// line per number of nodes and system, and how far each number of nodes is from
// what was fitted.
void PrintPredictions(const PredictionReport& report, std::ostream& out);
std::string PredictionsToJson(const PredictionReport& report);

}  // namespace hvdlite::scale_sim
