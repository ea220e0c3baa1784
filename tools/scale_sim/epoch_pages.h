// The results of each command as a page for browsers: curves, offline.
#pragma once

#include <string>
#include <vector>

#include "tools/scale_sim/epoch_reports.h"
#include "tools/scale_sim/report.h"

namespace hvdlite::scale_sim {

// Measured and predicted epoch times of each column, what was fitted and how
// well it predicts.
std::string FitPage(const FitReport& report);

// Epoch times and efficiencies of both systems over nodes, for each column.
std::string PredictionsPage(const PredictionReport& report);

// Latencies over ranks, a curve for each topology and arity.
std::string NegotiationPage(const std::vector<Row>& rows);

}  // namespace hvdlite::scale_sim
