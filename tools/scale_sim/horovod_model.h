// HorovodModel: all that an epoch with Horovod depends on.
#pragma once

#include "tools/scale_sim/epoch.h"
#include "tools/scale_sim/horovod_step.h"
#include "tools/scale_sim/training_model.h"

namespace hvdlite::scale_sim {

struct HorovodModel {
  TrainingModel training;
  HorovodOptions options;
  LastBatch last_batch = LastBatch::kPartial;
};

// An epoch of `images` on `ranks` ranks in steps of up to `batch` per rank.
EpochTime HorovodEpoch(const HorovodModel& model, int images, int batch,
                       int ranks);

}  // namespace hvdlite::scale_sim
