// Batches, put together from their events on all ranks of hvdlite's traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// A batch on one rank.
struct RankBatch {
  int64_t rank = 0;
  int64_t submitted_ns = 0;  // its first tensor, by the application
  int64_t ready_ns = 0;      // its last tensor
  int64_t picked_up_ns = 0;  // the longest that one waited for the coordinator
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t gate_ns = 0;  // until all ranks had begun it
  int64_t copy_ns = 0;
  int64_t data_ns = 0;
};

// Tensors that were reduced together.
struct Batch {
  int64_t number = 0;
  std::string collective;  // such as "ALLREDUCE"
  std::string algorithm;
  int64_t bytes = 0;
  int64_t tensors = 0;
  // The rank that was last to have all its tensors submitted, and how much
  // later than the one before it; by the root's word where the trace holds one
  // rank alone. -1: not known, or a world of one.
  int64_t last_rank = -1;
  int64_t lateness_ns = 0;
  int64_t ready_everywhere_ns = 0;
  std::vector<RankBatch> ranks;  // by rank
};

// By start on the lowest rank.
std::vector<Batch> FindBatches(const Trace& trace);

}  // namespace hvdlite::timeline
