#include "tools/scale_sim/horovod_model.h"

namespace hvdlite::scale_sim {

EpochTime HorovodEpoch(const HorovodModel& model, int images, int batch,
                       int ranks) {
  return TimeOfEpoch(StepsOfEpoch(images, batch, ranks, model.last_batch),
                     model.training.compute, [&](int of_rank) {
                       return HorovodStep(model.training, model.options,
                                          of_rank, ranks);
                     });
}

}  // namespace hvdlite::scale_sim
