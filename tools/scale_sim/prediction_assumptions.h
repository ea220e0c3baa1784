// What predictions rest on, in words.
#pragma once

#include <string>
#include <vector>

#include "tools/scale_sim/prediction_report.h"

namespace hvdlite::scale_sim {

// A sentence each, with the flag that changes it.
struct PredictionAssumptions {
  std::vector<std::string> both;
  std::vector<std::string> horovod;
  std::vector<std::string> hvdlite;
};

// For the fit of a column.
PredictionAssumptions AssumptionsOf(const PredictionReport& report,
                                    const ColumnFit& fit);

}  // namespace hvdlite::scale_sim
