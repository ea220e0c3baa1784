#include "trainers/schedule.h"

#include <algorithm>
#include <cmath>

namespace hvdlite::trainers {

double LearningRateSchedule::At(int64_t step) const {
  const double epoch =
      static_cast<double>(step) / static_cast<double>(steps_per_epoch);
  double factor = world_size;
  if (epoch < warmup_epochs) {
    factor = 1.0 + (world_size - 1) * epoch / warmup_epochs;
  }
  for (const double milestone : milestones) {
    if (epoch >= milestone) factor *= gamma;
  }
  return base * factor;
}

double InverseSquareRootSchedule::At(int64_t step) const {
  const double s = static_cast<double>(step) + 1;
  const auto warmup = static_cast<double>(warmup_steps);
  return factor / std::sqrt(static_cast<double>(d_model)) *
         std::min(1 / std::sqrt(s), s * std::pow(warmup, -1.5));
}

}  // namespace hvdlite::trainers
