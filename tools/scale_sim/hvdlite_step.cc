#include "tools/scale_sim/hvdlite_step.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tools/scale_sim/simulation.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {
namespace {

double MeanSeconds(const std::vector<double>& samples_ms) {
  return 1e-3 * std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0) /
         static_cast<double>(samples_ms.size());
}

}  // namespace

absl::StatusOr<StepTime> HvdliteStep(const TrainingModel& model,
                                     const HvdliteOptions& options,
                                     double images, int ranks) {
  const ComputeModel& compute = model.compute;
  const double computation_ms =
      images * compute.image_ms / (1 - compute.starved_share);
  if (ranks == 1) {
    StepTime alone;
    alone.step = alone.computation =
        images * compute.image_ms * 1e-3 * (1 + compute.jitter);
    return alone;
  }
  SimulationOptions simulation;
  simulation.ranks = std::min(ranks, options.max_simulated_ranks);
  simulation.tree_arity = options.tree_arity;
  simulation.network.within_node = model.allreduce.within_node;
  simulation.network.between_nodes = model.allreduce.between_nodes;
  simulation.network.ranks_per_node = model.allreduce.ranks_per_node;
  simulation.network.seed = simulation.seed = options.seed;
  simulation.cost.forward_ms = computation_ms * compute.forward_share;
  simulation.cost.backward_ms = computation_ms * (1 - compute.forward_share);
  simulation.cost.allreduce = model.allreduce;
  simulation.cost.allreduce_ranks = ranks;
  simulation.compute_jitter = compute.jitter;
  simulation.workload = TrainingWith(model.gradients);
  simulation.steps = options.steps;
  simulation.fusion_threshold_bytes = options.fusion_threshold_bytes;
  simulation.min_batch_bytes = options.overlap
                                   ? options.min_batch_bytes
                                   : std::numeric_limits<int64_t>::max();
  absl::StatusOr<SimulationResult> result = Simulate(simulation);
  if (!result.ok()) return result.status();
  StepTime time;
  time.step = MeanSeconds(result->step_ms);
  time.computation = MeanSeconds(result->computation_ms);
  time.communication = MeanSeconds(result->batches_ms);
  time.exposed = time.step - time.computation;
  time.batches = static_cast<int>(result->steady.decisions / options.steps);
  return time;
}

}  // namespace hvdlite::scale_sim
