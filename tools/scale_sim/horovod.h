// HorovodModel: all that an epoch with Horovod depends on. Its steps are
// computed, not simulated message by message.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/scale_sim/allreduce_cost.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {

// The expected maximum of `draws` (1 or more) independent draws from an
// exponential distribution of mean 1: the harmonic number 1 + 1/2 + ... +
// 1/draws (Renyi, "On the theory of order statistics", 1953). It grows by ln 2
// each time that the number doubles.
inline double ExpectedExponentialMaximum(int draws) {
  double sum = 0;
  for (int i = draws; i >= 1; --i) sum += 1.0 / i;
  return sum;
}

struct ComputeModel {
  // Forward and backward of one image on a rank that has its cores to itself,
  // with the threads that it was measured with.
  double image_ms = 1;
  // Of it the forward pass. Backward takes twice as many multiply-adds.
  double forward_share = 1.0 / 3;
  // The part of its speed that computation loses where there is more than one
  // rank: to a communication thread that waits on the cores of the team
  // (StarvedShare).
  double starved_share = 0;
  // Of an epoch's first batch, on top and hidden by nothing, as a part of its
  // computation: to load it, to touch memory for the first time.
  double first_batch_share = 0;
  // A rank computes 1 + E times as long in a step, E exponential with this
  // mean.
  double jitter = 0;
};

// What a training costs on every rank, for both systems.
struct TrainingModel {
  ComputeModel compute;
  AllreduceModel allreduce;
  GradientSet gradients;
};

// Horovod's background thread: every cycle the ranks tell rank 0 what is ready,
// which answers with what all have; that is packed into buffers of up to the
// fusion threshold, which are reduced by blocking calls, one after the other.
struct HorovodOptions {
  double cycle_ms = 1;                       // HOROVOD_CYCLE_TIME
  int64_t fusion_bytes = int64_t{64} << 20;  // HOROVOD_FUSION_THRESHOLD
  // The speed at which computation goes on during an allreduce, as a part of
  // its speed at other times in the step.
  double overlap = 0;
};

// Where the time of a step went; seconds.
struct StepTime {
  double step = 0;           // from its beginning until all is reduced
  double computation = 0;    // of the slowest rank, starved as it is
  double communication = 0;  // all allreduces
  double exposed = 0;        // step - computation
  int batches = 0;
};

// The step of `ranks` ranks with `images` images each. The slowest rank
// decides: its computation takes 1 + jitter * ExpectedExponentialMaximum(ranks)
// times as long as one without jitter.
StepTime HorovodStep(const TrainingModel& model, const HorovodOptions& options,
                     double images, int ranks);

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

struct HorovodModel {
  TrainingModel training;
  HorovodOptions options;
  LastBatch last_batch = LastBatch::kPartial;
};

// An epoch of `images` on `ranks` ranks in steps of up to `batch` per rank.
EpochTime HorovodEpoch(const HorovodModel& model, int images, int batch,
                       int ranks);

}  // namespace hvdlite::scale_sim
