// What a blocking allreduce takes, by the LogGP model and a cost of software;
// and CostModel: what computation and collectives take in a simulation.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "tools/scale_sim/network.h"

namespace hvdlite::scale_sim {

// For n bytes on p ranks; the formulas are those of Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH" (2005).
enum class AllreduceAlgorithm {
  kRecursiveDoubling,  // log2 p exchanges of n bytes
  kRing,               // 2 (p - 1) exchanges of n / p bytes
  kRabenseifner,       // 2 log2 p exchanges, of 2 n (p - 1) / p bytes in all
  kFastest,            // of these three, for each call
};

// "recursive-doubling", "ring", "rabenseifner", "fastest"; nullopt for others.
std::optional<AllreduceAlgorithm> AllreduceAlgorithmNamed(
    absl::string_view name);

struct AllreduceModel {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kRecursiveDoubling;
  LinkParameters within_node;
  LinkParameters between_nodes;
  // Ranks of a node share its port: with R of them sending at once, each gets
  // an R-th of the bandwidth.
  int ranks_per_node = 1;
  // Of a core per byte that a rank sends in an exchange: copies, additions,
  // page faults of temporary buffers. On top of the link's G.
  double software_ns_per_byte = 0;
  // First reduced in the node through shared memory, then by every rank of a
  // node for its part of the buffer, with its fellows on the other nodes.
  bool hierarchical = false;
  // Two levels: per byte of the 2 n (R - 1) / R that a rank reads in its node.
  double shared_memory_ns_per_byte = 0;
  // Larger buffers go in pieces of this size, one after the other; 0: at once.
  int64_t chunk_bytes = 0;
};

// Of one allreduce of `bytes` among `ranks`, which all begin at once. 0 for one
// rank and for no bytes.
double AllreduceSeconds(const AllreduceModel& model, int64_t bytes, int ranks);

// The same for every rank.
struct CostModel {
  double forward_ms = 50;
  double backward_ms = 100;
  double batch_us = 0;
  // On top of batch_us, for the bytes of a batch.
  std::optional<AllreduceModel> allreduce;
  // The size of the world that the allreduce is charged for; 0: all ranks that
  // are simulated.
  int allreduce_ranks = 0;

  // From a step's beginning until a gradient is ready that backward produces
  // after `fraction` of its time.
  int64_t ReadyNanos(double fraction) const {
    return std::llround((forward_ms + fraction * backward_ms) * 1e6);
  }

  // A batch of `bytes` on `ranks` ranks, from the time at which the last of
  // them has begun.
  int64_t BatchNanos(int64_t bytes, int ranks) const {
    double us = batch_us;
    if (allreduce.has_value()) {
      us +=
          1e6 * AllreduceSeconds(*allreduce, bytes,
                                 allreduce_ranks > 0 ? allreduce_ranks : ranks);
    }
    return std::llround(us * 1e3);
  }
};

}  // namespace hvdlite::scale_sim
