#include "tools/scale_sim/epoch.h"

namespace hvdlite::scale_sim {

std::vector<StepGroup> StepsOfEpoch(int images, int batch, int ranks,
                                    LastBatch last) {
  const int of_rank = (images + ranks - 1) / ranks;
  std::vector<StepGroup> steps;
  if (of_rank >= batch) {
    steps.push_back({.steps = of_rank / batch, .images = batch});
  }
  const int rest = of_rank % batch;
  if (rest == 0) return steps;
  if (last == LastBatch::kPartial) {
    steps.push_back({.steps = 1, .images = rest});
  } else if (steps.empty()) {
    steps.push_back({.steps = 1, .images = batch});
  } else {
    ++steps.front().steps;
  }
  return steps;
}

EpochTime TimeOfEpoch(const std::vector<StepGroup>& steps,
                      const ComputeModel& compute,
                      const std::function<StepTime(int images)>& step) {
  EpochTime epoch;
  for (const StepGroup& group : steps) {
    const StepTime time = step(group.images);
    const auto count = static_cast<double>(group.steps);
    epoch.steps += group.steps;
    epoch.seconds += count * time.step;
    epoch.exposed_seconds += count * time.exposed;
  }
  if (!steps.empty()) {
    epoch.seconds += compute.first_batch_image_ms * 1e-3 * steps.front().images;
  }
  return epoch;
}

}  // namespace hvdlite::scale_sim
