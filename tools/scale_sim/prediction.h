// Predictions: epochs and steps of both systems on any number of nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/fit.h"
#include "tools/scale_sim/hvdlite_step.h"
#include "tools/scale_sim/starvation.h"

namespace hvdlite::scale_sim {

// What is different with hvdlite; all else is as the fit found it.
struct HvdliteAssumptions {
  // A node's cores are cut into so many equal parts, a rank each. The speed of
  // a node, and its images per step, stay those of the fit with one rank per
  // node.
  int ranks_per_node = 4;
  CommunicationCore core = CommunicationCore::kOwn;
  // With a shared core: the part of the time that its thread is runnable.
  double busy_share = 1;
  bool two_level = true;
  double shared_memory_ns_per_byte = 0.13;
  int64_t chunk_bytes = int64_t{4} << 20;
  std::optional<AllreduceAlgorithm> algorithm;  // none: the fit's
  std::optional<double> software_ns_per_byte;   // none: the fit's
  HvdliteOptions options;
};

// One line: a system on a number of nodes.
struct Prediction {
  std::string system;  // "horovod", "hvdlite"
  int nodes = 0;
  int ranks = 0;
  int simulated_ranks = 0;  // 0: computed
  // Strong scaling: one epoch of the data set.
  EpochTime epoch;
  double speedup = 0;     // over one node
  double efficiency = 0;  // T1 / (N TN)
  // Weak scaling: a step with a full batch on every rank, however many.
  StepTime full_step;
  double weak_efficiency = 0;  // T1 / TN
};

// Both systems on one node (what efficiencies refer to) and on each of `nodes`,
// for a fit of a column with one rank per node.
absl::StatusOr<std::vector<Prediction>> Predict(
    const EpochTable& table, const ColumnFit& fit,
    const HvdliteAssumptions& assumptions, const std::vector<int>& nodes);

// What hvdlite's step is predicted from.
TrainingModel HvdliteTrainingModel(const EpochTable& table,
                                   const ColumnFit& fit,
                                   const HvdliteAssumptions& assumptions);

}  // namespace hvdlite::scale_sim
