// Predictions as text and as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/scale_sim/prediction.h"

namespace hvdlite::scale_sim {

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
