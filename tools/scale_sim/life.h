// What a world's life costs its busiest rank: beginning, steps, ranks that are
// late, the end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/network.h"

namespace hvdlite::scale_sim {

struct LifeOptions {
  int ranks = 2;
  int tree_arity = 8;  // from 1 to 31
  NetworkParameters network;
  int tensors = 161;          // of ResNet50's gradients, in each step
  int stalled_tensors = 400;  // pending, while ranks are late
  // Measures the time that each rank's Negotiator takes. All else is the same
  // on any machine.
  bool measure_cpu = false;
  // Told of each phase that begins, those between the ones that are told of,
  // too.
  std::function<void()> on_phase = {};
};

// How often on_phase is called.
int PhasesOfLife(int ranks);

// Sums of one phase, of what a rank sends and receives.
struct PhaseLoad {
  std::string phase;
  double virtual_ms = 0;  // LogGP's; a Negotiator takes no time in it
  int64_t max_messages = 0;
  int64_t max_bytes = 0;
  int64_t root_messages = 0;
  int64_t root_bytes = 0;
  int64_t messages = 0;  // that all ranks sent
  double max_cpu_ms = 0;
  std::vector<std::string> warnings;
};

// The phases, one after the other, of ranks that run the real Negotiator and
// send their messages as bytes:
// - announcing: two steps, in which names are announced and get their ids;
// - steady: a step after that;
// - one late: the last rank does not submit `stalled_tensors` operations of one
//   name each, until the others were warned once;
// - one early: it alone submits them, until it was warned once;
// - late to leave: all ranks but the last leave, and wait until they were
//   warned once;
// - shutdown: the last one leaves, and the world ends.
// A step is submitted at once on all ranks, and waited for, the last tensor
// first. Batches take no time. Heartbeats are off: they are a ping and an
// answer per second and link, whatever the world.
absl::StatusOr<std::vector<PhaseLoad>> SimulateLife(const LifeOptions& options);

}  // namespace hvdlite::scale_sim
