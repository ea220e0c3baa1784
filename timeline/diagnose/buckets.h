// Buckets, assembled from their events on all ranks in hvdlite's traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// A bucket on one rank.
struct RankBucket {
  int64_t rank = 0;
  int64_t submitted_ns = 0;  // the application submitted the first tensor
  int64_t ready_ns = 0;      // the application submitted the last tensor
  int64_t picked_up_ns = 0;  // longest wait of a tensor for the coordinator
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t gate_ns = 0;  // wait until all ranks had started the bucket
  int64_t copy_ns = 0;
  int64_t data_ns = 0;
};

// A bucket: tensors that were reduced together.
struct Bucket {
  int64_t number = 0;
  std::string collective;  // such as "ALLREDUCE"
  std::string algorithm;
  int64_t bytes = 0;
  int64_t tensors = 0;
  // The rank that submitted its tensors last, and how much later than the rank
  // before it. A trace of a single rank has this from rank 0's report. -1:
  // unknown, or a world of one rank.
  int64_t last_rank = -1;
  int64_t lateness_ns = 0;
  int64_t ready_everywhere_ns = 0;
  std::vector<RankBucket> ranks;  // by rank
};

// Returns the buckets, ordered by their start on the lowest rank.
std::vector<Bucket> FindBuckets(const Trace& trace);

}  // namespace hvdlite::timeline
