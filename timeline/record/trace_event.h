// One event of a Chrome trace, and the lanes that events stand on.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// Lanes (Chrome's tid) that have a fixed meaning on every rank. Tensors in
// flight take lanes from kFirstTensorLane on (see LaneAllocator).
inline constexpr int kBatchLane = 1;  // phases of the batch being reduced
inline constexpr int kChunkLane = 2;  // single chunks; summaries leave it out
inline constexpr int kUserLane = 3;   // spans recorded by the application
inline constexpr int kStepLane = 4;   // training steps
inline constexpr int kFirstTensorLane = 10;

// Event that DistributedOptimizer records while its step() or synchronize()
// waits for gradients, on the application's lane.
inline constexpr char kWaitForGradients[] = "WAIT_FOR_GRADIENTS";

using TraceArg =
    std::pair<std::string, std::variant<int64_t, double, std::string>>;

// Of `args`; fallback where there is none called `name`, or it is no integer.
int64_t NumberOf(const std::vector<TraceArg>& args, absl::string_view name,
                 int64_t fallback);
// Empty where there is none, or it is no text.
std::string TextOf(const std::vector<TraceArg>& args, absl::string_view name);

// Something that took time on one lane of a rank (Chrome's complete event), or
// a counter's values.
struct TraceEvent {
  enum class Kind { kComplete, kCounter };
  // Arrows lead from where a flow goes out to where it comes in.
  enum class Flow { kNone, kOut, kIn };

  std::string name;       // such as "NEGOTIATE_ALLREDUCE"
  int lane = kBatchLane;  // never 0
  int64_t start_ns = 0;   // of the rank's monotonic clock (base::Clock)
  int64_t duration_ns = 0;
  std::vector<TraceArg> args = {};  // of a counter: its values
  Kind kind = Kind::kComplete;
  Flow flow = Flow::kNone;
  int64_t flow_id = 0;  // among those of this rank
};

// What a training step took, beside its time.
struct StepCost {
  int64_t work = -1;    // in the program's unit; -1: it has not said
  int64_t cpu_us = -1;  // of the thread that trains, outside of waits for
                        // gradients; -1: not known
};

// The step `number`, from 1; args are left out where the cost is not known.
TraceEvent StepEvent(int64_t number, int64_t start_ns, int64_t end_ns,
                     const StepCost& cost);

// Gives each tensor in flight a lane of its own, always the lowest that is
// free: so a trace has no more lanes than tensors were in flight at once. Not
// thread-safe.
class LaneAllocator {
 public:
  int Acquire() {
    if (free_.empty()) return next_++;
    const int lane = free_.top();
    free_.pop();
    return lane;
  }
  void Release(int lane) { free_.push(lane); }

 private:
  std::priority_queue<int, std::vector<int>, std::greater<int>> free_;
  int next_ = kFirstTensorLane;
};

}  // namespace hvdlite::timeline
