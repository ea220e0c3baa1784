// TrainingModel: what a training costs on every rank, for both systems.
#pragma once

#include "tools/scale_sim/allreduce_cost.h"
#include "tools/scale_sim/gradient_set.h"

namespace hvdlite::scale_sim {

struct ComputeModel {
  // Forward and backward of one image on a rank that has its cores to itself,
  // with the threads that it was measured with.
  double image_ms = 1;
  // Of it the forward pass. Backward takes twice as many multiply-adds.
  double forward_share = 1.0 / 3;
  // The part of its speed that computation loses where there is more than one
  // rank: to a communication thread that waits on the cores of the team
  // (starvation.h).
  double starved_share = 0;
  // Per image of an epoch's first batch, on top, hidden by nothing: to load it,
  // to touch memory for the first time.
  double first_batch_image_ms = 0;
  // A rank computes 1 + E times as long in a step, E exponential with this
  // mean.
  double jitter = 0;
};

struct TrainingModel {
  ComputeModel compute;
  AllreduceModel allreduce;
  GradientSet gradients;
};

}  // namespace hvdlite::scale_sim
