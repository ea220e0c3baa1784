// Simulation: many ranks that run the real Negotiator in virtual time.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {

// What computation and collectives take; the same for every rank.
struct CostModel {
  double forward_ms = 50;
  double backward_ms = 100;
  // Of a batch of n bytes: batch_us for each of its pieces of chunk_bytes (0:
  // it is one piece), and n * batch_ns_per_byte.
  double batch_us = 0;
  double batch_ns_per_byte = 0;
  int64_t chunk_bytes = 0;

  // From a step's beginning until a gradient is ready that backward produces
  // after `fraction` of its time.
  int64_t ReadyNanos(double fraction) const {
    return std::llround((forward_ms + fraction * backward_ms) * 1e6);
  }

  // From the time at which the last rank has begun the batch.
  int64_t BatchNanos(int64_t bytes) const {
    const int64_t pieces =
        chunk_bytes > 0 && bytes > 0 ? (bytes - 1) / chunk_bytes + 1 : 1;
    return std::llround(static_cast<double>(pieces) * batch_us * 1e3 +
                        static_cast<double>(bytes) * batch_ns_per_byte);
  }
};

struct SimulationOptions {
  int ranks = 2;
  int tree_arity = 8;  // from 1 to 31
  NetworkParameters network;
  CostModel cost;
  Workload workload;
  // Steps that are not measured. In the first two of a run names are announced
  // and get their ids; what follows is the steady state.
  int warmup_steps = 2;
  int steps = 3;
  // How long the background thread lets submissions gather (kGatherPause in
  // negotiation/engine/coordinator.cc).
  double gather_us = 100;
  // A rank's computation takes 1 + E times as long in a step as the cost model
  // says, with E drawn per rank and step from an exponential distribution of
  // this mean.
  double compute_jitter = 0;
  // So many ranks, drawn once, begin each step's computation this late.
  int stragglers = 0;
  double straggler_delay_ms = 0;
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  int64_t min_batch_bytes = int64_t{4} << 20;
  uint64_t seed = 1;  // of compute jitter and stragglers
  // Told of each batch that has ended, with its tensors: of a step so many as
  // the workload has.
  std::function<void(int tensors)> on_progress = {};
};

// Messages that ranks sent in some steps.
struct Traffic {
  std::vector<int64_t> messages;  // per rank
  std::vector<int64_t> bytes;     // per rank
  int64_t root_received = 0;
  int64_t root_received_bytes = 0;
  int64_t decisions = 0;  // of the root
};

struct SimulationResult {
  int root_children = 0;
  int tree_height = 0;
  // Of the measured steps. From the time at which the last rank had a tensor
  // ready until a rank began its batch: per tensor and rank.
  std::vector<float> tensor_latency_us;
  // The same from the time at which the last tensor of the batch was ready and
  // the batch before had ended: what negotiation alone adds. Per batch and
  // rank.
  std::vector<float> batch_latency_us;
  // Per step: from its beginning on rank 0 to its end on rank 0.
  std::vector<double> step_ms;
  // Per step: from its beginning until the last rank has computed.
  std::vector<double> computation_ms;
  // Per step: all batches.
  std::vector<double> batches_ms;
  // Per tensor of a step: how long after the first rank the last was ready.
  std::vector<float> lateness_us;
  Traffic warmup;
  Traffic steady;
};

// Deterministic: the same options give the same result. Errors: those of the
// protocol, which would be a bug of it or of the simulator.
absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options);

}  // namespace hvdlite::scale_sim
