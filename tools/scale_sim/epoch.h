// An epoch: which steps it has, and how long they take together.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/scale_sim/horovod_step.h"
#include "tools/scale_sim/training_model.h"

namespace hvdlite::scale_sim {

// What the last step of an epoch does when the images do not come out even.
enum class LastBatch {
  kPartial,  // takes what is left
  kFull,     // takes a full batch again
};

// `steps` steps in which a rank takes `images` images.
struct StepGroup {
  int64_t steps = 0;
  int images = 0;
};

// The steps of the rank that gets most, in order. Every rank gets `images` /
// `ranks` images, rounded up, in steps of up to `batch`. There are
// ceil(images / (batch * ranks)) steps.
std::vector<StepGroup> StepsOfEpoch(int images, int batch, int ranks,
                                    LastBatch last);

struct EpochTime {
  int64_t steps = 0;
  double seconds = 0;
  double exposed_seconds = 0;  // of it communication that nothing hides
};

// `step`: what a step takes in which a rank has so many images.
EpochTime TimeOfEpoch(const std::vector<StepGroup>& steps,
                      const ComputeModel& compute,
                      const std::function<StepTime(int images)>& step);

}  // namespace hvdlite::scale_sim
