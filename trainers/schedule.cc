#include "trainers/schedule.h"

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

}  // namespace hvdlite::trainers
