// Simulates many ranks, which run the real Negotiator in virtual time.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {

// The time of computation and collectives, the same for every rank.
struct CostModel {
  double forward_ms = 50;
  double backward_ms = 100;
  // A bucket of n bytes takes bucket_us for each piece of chunk_bytes (0: one
  // piece), plus n * bucket_ns_per_byte.
  double bucket_us = 0;
  double bucket_ns_per_byte = 0;
  int64_t chunk_bytes = 0;

  // The time from the start of a step until a gradient is ready that backward
  // produces after `fraction` of its time.
  int64_t ReadyNanos(double fraction) const {
    return std::llround((forward_ms + fraction * backward_ms) * 1e6);
  }

  // The time of a bucket after the last rank has started it.
  int64_t BucketNanos(int64_t bytes) const {
    const int64_t pieces =
        chunk_bytes > 0 && bytes > 0 ? (bytes - 1) / chunk_bytes + 1 : 1;
    return std::llround(static_cast<double>(pieces) * bucket_us * 1e3 +
                        static_cast<double>(bytes) * bucket_ns_per_byte);
  }
};

struct SimulationOptions {
  int ranks = 2;
  int tree_arity = 8;  // from 1 to 31
  NetworkParameters network;
  CostModel cost;
  Workload workload;
  // Steps that are not measured. In the first two steps, names are announced
  // and get their ids. Then the steady state begins.
  int warmup_steps = 2;
  int steps = 3;
  // How long the background thread collects submissions (kGatherPause in
  // negotiation/engine/coordinator.cc).
  double gather_us = 100;
  // The computation of a rank in a step takes 1 + E times the time of the cost
  // model. E is drawn per rank and step from an exponential distribution with
  // this mean.
  double compute_jitter = 0;
  // Number of ranks, drawn once, that start each step late by the delay.
  int stragglers = 0;
  double straggler_delay_ms = 0;
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  int64_t min_batch_bytes = int64_t{4} << 20;
  uint64_t seed = 1;  // for compute jitter and stragglers
  // Called when a bucket has ended, with its number of tensors. Over a step,
  // these add up to the tensors of the workload.
  std::function<void(int tensors)> on_progress = {};
};

// The messages that ranks sent in some steps.
struct Traffic {
  std::vector<int64_t> messages;  // per rank
  std::vector<int64_t> bytes;     // per rank
  int64_t root_received = 0;
  int64_t root_received_bytes = 0;
  int64_t decisions = 0;  // made by the root
};

struct SimulationResult {
  int root_children = 0;
  int tree_height = 0;
  // The vectors are about the measured steps. Per tensor and rank: the time
  // from when the last rank had the tensor ready until this rank started its
  // bucket.
  std::vector<float> tensor_latency_us;
  // Per bucket and rank: the time that negotiation alone adds. It begins when
  // the last tensor of the bucket was ready and the bucket before had ended.
  std::vector<float> bucket_latency_us;
  // Per step: from its start on rank 0 to its end on rank 0.
  std::vector<double> step_ms;
  // Per step: from its start until the last rank has computed.
  std::vector<double> computation_ms;
  // Per step: the time of all buckets.
  std::vector<double> buckets_ms;
  // Per tensor of a step: the time between the first and the last rank that had
  // it ready.
  std::vector<float> lateness_us;
  Traffic warmup;
  Traffic steady;
};

// Deterministic: the same options give the same result. Errors: errors of the
// protocol. They mean a bug in the protocol or in the simulator.
absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options);

}  // namespace hvdlite::scale_sim
