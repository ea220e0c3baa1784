#include "tools/scale_sim/prediction.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/scale_sim/simulation.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {
namespace {

double MeanSeconds(const std::vector<double>& samples_ms) {
  return 1e-3 * std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0) /
         static_cast<double>(samples_ms.size());
}

// A system whose steps can be asked for.
struct System {
  std::string name;
  int ranks_per_node = 1;
  int batch_per_rank = 1;
  ComputeModel compute;
  LastBatch last_batch = LastBatch::kPartial;
  int max_simulated_ranks = 0;  // 0: computed
  std::function<absl::StatusOr<StepTime>(int images, int ranks)> step;
};

absl::StatusOr<Prediction> PredictOn(int nodes, const EpochTable& table,
                                     const System& system) {
  Prediction prediction;
  prediction.system = system.name;
  prediction.nodes = nodes;
  prediction.ranks = nodes * system.ranks_per_node;
  prediction.simulated_ranks =
      prediction.ranks == 1
          ? 0
          : std::min(prediction.ranks, system.max_simulated_ranks);
  const std::vector<StepGroup> groups = StepsOfEpoch(
      table.images, system.batch_per_rank, prediction.ranks, system.last_batch);
  std::map<int, StepTime> steps;  // per images of a rank
  std::vector<int> wanted = {system.batch_per_rank};
  for (const StepGroup& group : groups) wanted.push_back(group.images);
  for (const int images : wanted) {
    if (steps.count(images)) continue;
    absl::StatusOr<StepTime> step = system.step(images, prediction.ranks);
    if (!step.ok()) {
      return absl::Status(step.status().code(),
                          absl::StrCat(system.name, " on ", nodes,
                                       " nodes: ", step.status().message()));
    }
    steps[images] = *step;
  }
  prediction.epoch = TimeOfEpoch(groups, system.compute,
                                 [&](int images) { return steps.at(images); });
  prediction.full_step = steps.at(system.batch_per_rank);
  return prediction;
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
  simulation.compute_jitter = compute.jitter *
                              ExpectedExponentialMaximum(ranks) /
                              ExpectedExponentialMaximum(simulation.ranks);
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

TrainingModel HvdliteTrainingModel(const EpochTable& table,
                                   const ColumnFit& fit,
                                   const HvdliteAssumptions& assumptions) {
  TrainingModel model = fit.model.training;
  const int ranks = assumptions.ranks_per_node;
  model.compute.image_ms *= ranks;
  if (assumptions.core.has_value()) {
    model.compute.starved_share =
        StarvedShare(*assumptions.core, table.cores_per_node / ranks,
                     assumptions.busy_share);
  }
  AllreduceModel& allreduce = model.allreduce;
  allreduce.ranks_per_node = ranks;
  allreduce.hierarchical = assumptions.hierarchical;
  allreduce.shared_memory_ns_per_byte = assumptions.shared_memory_ns_per_byte;
  allreduce.chunk_bytes = assumptions.chunk_bytes;
  allreduce.algorithm = assumptions.algorithm.value_or(allreduce.algorithm);
  allreduce.software_ns_per_byte =
      assumptions.software_ns_per_byte.value_or(allreduce.software_ns_per_byte);
  return model;
}

HvdliteAssumptions EqualSettings(const HorovodOptions& horovod,
                                 HvdliteAssumptions assumptions) {
  assumptions.ranks_per_node = 1;
  assumptions.core = std::nullopt;
  assumptions.hierarchical = false;
  assumptions.algorithm = std::nullopt;
  assumptions.software_ns_per_byte = std::nullopt;
  assumptions.options.overlap = horovod.overlap == 1;
  assumptions.options.fusion_threshold_bytes = horovod.fusion_bytes;
  return assumptions;
}

std::string NameOf(const HvdliteVariant& variant) {
  const HvdliteAssumptions& assumptions = variant.assumptions;
  if (!variant.added.has_value()) return "hvdlite, equal settings";
  switch (*variant.added) {
    case Addition::kCore:
      switch (assumptions.core.value_or(CommunicationCore::kShared)) {
        case CommunicationCore::kOwn:
          return "+ core of its own";
        case CommunicationCore::kSpare:
          return "+ spare core";
        case CommunicationCore::kShared:
          break;
      }
      return "+ shared core";
    case Addition::kOverlap:
      return "+ overlap";
    case Addition::kRanks:
      return absl::StrCat("+ ", assumptions.ranks_per_node,
                          assumptions.ranks_per_node == 1 ? " rank" : " ranks",
                          " per node");
    case Addition::kSharedMemory:
      return "+ shared memory";
    case Addition::kAlgorithm:
      return "+ algorithm";
    case Addition::kSoftware:
      break;
  }
  return absl::StrCat("+ ", assumptions.software_ns_per_byte.value_or(0),
                      " ns per byte");
}

std::vector<HvdliteVariant> Ablation(const HorovodOptions& horovod,
                                     const HvdliteAssumptions& full,
                                     const std::vector<Addition>& additions) {
  std::vector<HvdliteVariant> variants = {
      {.added = std::nullopt, .assumptions = EqualSettings(horovod, full)}};
  for (const Addition addition : additions) {
    HvdliteVariant next = variants.back();
    next.added = addition;
    HvdliteAssumptions& assumptions = next.assumptions;
    switch (addition) {
      case Addition::kCore:
        assumptions.core = full.core;
        break;
      case Addition::kOverlap:
        assumptions.options.overlap = true;
        break;
      case Addition::kRanks:
        assumptions.ranks_per_node = full.ranks_per_node;
        break;
      case Addition::kSharedMemory:
        assumptions.hierarchical = true;
        break;
      case Addition::kAlgorithm:
        assumptions.algorithm = full.algorithm;
        break;
      case Addition::kSoftware:
        assumptions.software_ns_per_byte = full.software_ns_per_byte;
        break;
    }
    variants.push_back(std::move(next));
  }
  return variants;
}

namespace {

absl::Status CheckVariant(const EpochTable& table,
                          const HvdliteVariant& variant) {
  const int ranks_per_node = variant.assumptions.ranks_per_node;
  if (table.cores_per_node % ranks_per_node == 0 &&
      table.batch_per_rank % ranks_per_node == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "ranks per node must divide ", table.cores_per_node, " cores and ",
      table.batch_per_rank, " images, but there are ", ranks_per_node));
}

System HvdliteSystem(const EpochTable& table, const ColumnFit& fit,
                     const HvdliteVariant& variant) {
  const HvdliteAssumptions& assumptions = variant.assumptions;
  TrainingModel model = HvdliteTrainingModel(table, fit, assumptions);
  return {.name = NameOf(variant),
          .ranks_per_node = assumptions.ranks_per_node,
          .batch_per_rank = table.batch_per_rank / assumptions.ranks_per_node,
          .compute = model.compute,
          .last_batch = fit.model.last_batch,
          .max_simulated_ranks = assumptions.options.max_simulated_ranks,
          .step = [model = std::move(model), options = assumptions.options](
                      int images, int ranks) {
            return HvdliteStep(model, options, images, ranks);
          }};
}

System HorovodSystem(const EpochTable& table, const HorovodModel& horovod) {
  return {.name = "horovod",
          .ranks_per_node = 1,
          .batch_per_rank = table.batch_per_rank,
          .compute = horovod.training.compute,
          .last_batch = horovod.last_batch,
          .max_simulated_ranks = 0,
          .step = [horovod](int images, int ranks) {
            return HorovodStep(horovod.training, horovod.options, images,
                               ranks);
          }};
}

}  // namespace

absl::StatusOr<std::vector<Prediction>> Predict(
    const EpochTable& table, const ColumnFit& fit,
    const std::vector<HvdliteVariant>& variants, const std::vector<int>& nodes,
    const std::function<void()>& on_prediction) {
  if (table.world_batch > 0 || table.ranks_stand_for_nodes) {
    return absl::InvalidArgumentError(
        "predictions are of nodes with a fixed batch per rank; this table's "
        "batch is the world's, or its N are ranks of one node");
  }
  if (fit.column.ranks_per_node != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "column '", fit.column.name,
        "' has several ranks per node, whose threads share cores in an unknown "
        "way; predict from a column with one rank per node"));
  }
  std::vector<System> systems = {HorovodSystem(table, fit.model)};
  for (const HvdliteVariant& variant : variants) {
    HVDLITE_RETURN_IF_ERROR(CheckVariant(table, variant));
    systems.push_back(HvdliteSystem(table, fit, variant));
  }
  std::vector<Prediction> alone;  // each on one node
  for (const System& system : systems) {
    HVDLITE_ASSIGN_OR_RETURN(alone.emplace_back(), PredictOn(1, table, system));
  }
  std::vector<Prediction> predictions;
  for (const int number : nodes) {
    const size_t horovod = predictions.size();
    for (size_t i = 0; i < systems.size(); ++i) {
      HVDLITE_ASSIGN_OR_RETURN(Prediction prediction,
                               PredictOn(number, table, systems[i]));
      prediction.speedup = alone[i].epoch.seconds / prediction.epoch.seconds;
      prediction.efficiency = prediction.speedup / number;
      prediction.weak_efficiency =
          alone[i].full_step.step / prediction.full_step.step;
      prediction.reach = ReachOf(fit, number);
      if (i > 0) {
        prediction.epoch_gain =
            predictions[horovod].epoch.seconds / prediction.epoch.seconds;
        prediction.step_gain =
            predictions[horovod].full_step.step / prediction.full_step.step;
      }
      predictions.push_back(std::move(prediction));
      if (on_prediction) on_prediction();
    }
  }
  return predictions;
}

}  // namespace hvdlite::scale_sim
