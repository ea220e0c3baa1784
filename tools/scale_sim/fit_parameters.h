// The parameters of a HorovodModel that a fit can find.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/scale_sim/horovod_model.h"

namespace hvdlite::scale_sim {

// Positive, and searched on a logarithmic scale.
struct FitParameter {
  absl::string_view name;  // as in flags and reports; with the unit
  double start = 0;        // where the search begins
  double lower = 0;        // stands for 0
  double upper = 0;
  double& (*of)(HorovodModel& model) = nullptr;
};

// image-ms, starved-share, software-ns-per-byte, first-batch-image-ms, jitter.
const std::vector<FitParameter>& FitParameters();

// nullptr: there is none of this name.
const FitParameter* FindFitParameter(absl::string_view name);

}  // namespace hvdlite::scale_sim
