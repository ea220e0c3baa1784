// Predictions: epochs and steps of both systems on any number of nodes. A step
// with Horovod is computed, one with hvdlite simulated, with its Negotiator.
#pragma once

#include <functional>
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
  bool overlap = false;
  // Steps that are averaged; one is enough without jitter.
  int steps = 1;
  // Of a larger world so many ranks are simulated. The allreduce is charged for
  // all of it, and their jitter makes the slowest as slow as all would have it;
  // what is missed are levels of the negotiation's tree, some microseconds.
  int max_simulated_ranks = 128;
  uint64_t seed = 1;
};

// The step of `ranks` ranks with `images` images each: the mean of
// `options.steps`. Errors: those of the protocol.
absl::StatusOr<StepTime> HvdliteStep(const TrainingModel& model,
                                     const HvdliteOptions& options,
                                     double images, int ranks);

// How hvdlite is set up. As it stands here all that can be is as the fit found
// it with Horovod; negotiation, and the pieces that batches are reduced in, are
// hvdlite's own.
struct HvdliteAssumptions {
  // A node's cores are cut into so many equal parts, a rank each. The speed of
  // a node, and its images per step, stay those of the fit with one rank per
  // node.
  int ranks_per_node = 1;
  // Of the coordinator; none: it costs computation what Horovod's thread does.
  std::optional<CommunicationCore> core = {};
  // With a shared core: the part of the time that its thread is runnable.
  double busy_share = 1;
  bool hierarchical = false;
  double shared_memory_ns_per_byte = 0.13;
  int64_t chunk_bytes = int64_t{4} << 20;
  std::optional<AllreduceAlgorithm> algorithm = {};  // none: the fit's
  std::optional<double> software_ns_per_byte = {};   // none: the fit's
  HvdliteOptions options = {};
};

// The settings that `horovod` has, as far as they are hvdlite's, too, in
// `assumptions`.
HvdliteAssumptions EqualSettings(const HorovodOptions& horovod,
                                 HvdliteAssumptions assumptions);

// What hvdlite can have besides.
enum class Addition {
  kCore,          // a core for the coordinator
  kOverlap,       // of computation and communication
  kRanks,         // another number of ranks per node
  kSharedMemory,  // a node's ranks reduce through it
  kAlgorithm,     // of MPI's allreduce
  kSoftware,      // another cost of it
};

struct HvdliteVariant {
  std::optional<Addition> added;  // last; none: equal settings
  HvdliteAssumptions assumptions;
};

// "hvdlite, equal settings", "+ overlap".
std::string NameOf(const HvdliteVariant& variant);

// Equal settings, then each of `additions` on top of those before it, as `full`
// has it.
std::vector<HvdliteVariant> Ablation(const HorovodOptions& horovod,
                                     const HvdliteAssumptions& full,
                                     const std::vector<Addition>& additions);

// One line: a system on a number of nodes.
struct Prediction {
  std::string system;  // "horovod", or the variant's name
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
  // How many times as fast as Horovod on as many nodes.
  double epoch_gain = 1;
  double step_gain = 1;
  Reach reach;
};

// On each of `nodes` Horovod, then each variant, for a fit of a column with one
// rank per node. Efficiencies refer to one node of the same system.
// `on_prediction` is told of each.
absl::StatusOr<std::vector<Prediction>> Predict(
    const EpochTable& table, const ColumnFit& fit,
    const std::vector<HvdliteVariant>& variants, const std::vector<int>& nodes,
    const std::function<void()>& on_prediction = {});

// What hvdlite's step is predicted from.
TrainingModel HvdliteTrainingModel(const EpochTable& table,
                                   const ColumnFit& fit,
                                   const HvdliteAssumptions& assumptions);

}  // namespace hvdlite::scale_sim
