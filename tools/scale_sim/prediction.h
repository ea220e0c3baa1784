// Predictions: epochs and steps of both systems on any number of nodes. A step
// with Horovod is computed, one with hvdlite simulated, with its Negotiator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/fit.h"
#include "tools/scale_sim/horovod.h"

namespace hvdlite::scale_sim {

// On which core the communication thread runs, beside a team of threads.
enum class CommunicationCore {
  kShared,  // one of the team's: the kernel gives each of the two half of it
  kOwn,     // set aside: the team has one thread fewer
  kSpare,   // one that the team would not use anyway
};

// The part of its speed that a team of `threads` threads loses, in loops that
// are cut into equal parts (OpenMP's static schedule: all wait for the
// slowest), while the communication thread is runnable for `busy_share` of the
// time. A thread that shares its core then runs at half its speed.
inline double StarvedShare(CommunicationCore core, int threads,
                           double busy_share) {
  switch (core) {
    case CommunicationCore::kShared:
      return busy_share / 2;
    case CommunicationCore::kOwn:
      // A team of one has no core to set aside.
      return threads > 1 ? 1.0 / threads : busy_share / 2;
    case CommunicationCore::kSpare:
      break;
  }
  return 0;
}

struct HvdliteOptions {
  int tree_arity = 8;
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  int64_t min_batch_bytes = int64_t{4} << 20;
  // Computation goes on at its speed while a batch runs. Otherwise no batch
  // begins before step() waits.
  bool overlap = true;
  // Steps that are averaged; one is enough without jitter.
  int steps = 1;
  // Of a larger world so many ranks are simulated. The allreduce is charged for
  // all of it; what is missed are levels of the negotiation's tree and the
  // stragglers among the others.
  int max_simulated_ranks = 1024;
  uint64_t seed = 1;
};

// The step of `ranks` ranks with `images` images each: the mean of
// `options.steps`. Errors: those of the protocol.
absl::StatusOr<StepTime> HvdliteStep(const TrainingModel& model,
                                     const HvdliteOptions& options,
                                     double images, int ranks);

// What is different with hvdlite; all else is as the fit found it.
struct HvdliteAssumptions {
  // A node's cores are cut into so many equal parts, a rank each. The speed of
  // a node, and its images per step, stay those of the fit with one rank per
  // node.
  int ranks_per_node = 4;
  CommunicationCore core = CommunicationCore::kOwn;
  // With a shared core: the part of the time that its thread is runnable.
  double busy_share = 1;
  bool hierarchical = true;
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
