// One event of a Chrome trace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hvdlite::timeline {

// Lanes (Chrome's tid) that have a fixed meaning on every rank. Tensors in
// flight take lanes from kFirstTensorLane on (see LaneAllocator).
inline constexpr int kBatchLane = 1;  // phases of the batch being reduced
inline constexpr int kChunkLane = 2;  // single chunks; summaries leave it out
inline constexpr int kUserLane = 3;   // spans recorded by the application
inline constexpr int kFirstTensorLane = 10;

using TraceArg =
    std::pair<std::string, std::variant<int64_t, double, std::string>>;

// A complete event ("ph":"X"): something that took time on one lane of a rank.
struct TraceEvent {
  std::string name;       // such as "NEGOTIATE_ALLREDUCE"
  int lane = kBatchLane;  // never 0
  int64_t start_ns = 0;   // of the rank's monotonic clock (base::Clock)
  int64_t duration_ns = 0;
  std::vector<TraceArg> args;
};

}  // namespace hvdlite::timeline
