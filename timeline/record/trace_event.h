// One event of a Chrome trace, and the tracks of events.
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

// Tracks (Chrome's tid) with a fixed meaning on every rank. Tensors in flight
// use tracks from kFirstTensorTrack on (see TrackAllocator).
inline constexpr int kBucketTrack = 1;  // phases of the bucket being reduced
inline constexpr int kChunkTrack = 2;   // single chunks; summaries leave it out
inline constexpr int kUserTrack = 3;    // spans recorded by the application
inline constexpr int kStepTrack = 4;    // training steps
inline constexpr int kFirstTensorTrack = 10;

// DistributedOptimizer records this event on the application's track while its
// step() or synchronize() waits for gradients.
inline constexpr char kWaitForGradients[] = "WAIT_FOR_GRADIENTS";

using TraceArg =
    std::pair<std::string, std::variant<int64_t, double, std::string>>;

// The value of `name` in `args`; `fallback` if it is missing or not an integer.
int64_t NumberOf(const std::vector<TraceArg>& args, absl::string_view name,
                 int64_t fallback);
// The same for a string; empty if it is missing or not a string.
std::string TextOf(const std::vector<TraceArg>& args, absl::string_view name);

// An event that took time on one track of a rank (Chrome's complete event), or
// the values of a counter.
struct TraceEvent {
  enum class Kind { kComplete, kCounter };
  // Viewers draw an arrow from the event with kOut to the events with kIn.
  enum class Flow { kNone, kOut, kIn };

  std::string name;       // such as "NEGOTIATE_ALLREDUCE"
  int track = kBucketTrack;  // never 0
  int64_t start_ns = 0;   // of the rank's monotonic clock (base::Clock)
  int64_t duration_ns = 0;
  std::vector<TraceArg> args = {};  // for a counter: its values
  Kind kind = Kind::kComplete;
  Flow flow = Flow::kNone;
  int64_t flow_id = 0;  // unique on this rank
};

// The cost of a training step besides its time.
struct StepCost {
  int64_t work = -1;    // in the program's unit; -1: unknown
  int64_t cpu_us = -1;  // CPU time of the thread that trains, without waits for
                        // gradients; -1: unknown
};

// The event of step `number` (from 1). Unknown costs are left out.
TraceEvent StepEvent(int64_t number, int64_t start_ns, int64_t end_ns,
                     const StepCost& cost);

// Gives each tensor in flight a track of its own, always the lowest free one.
// So a trace has at most as many tracks as tensors were in flight at once. Not
// thread-safe.
class TrackAllocator {
 public:
  int Acquire() {
    if (free_.empty()) return next_++;
    const int track = free_.top();
    free_.pop();
    return track;
  }
  void Release(int track) { free_.push(track); }

 private:
  std::priority_queue<int, std::vector<int>, std::greater<int>> free_;
  int next_ = kFirstTensorTrack;
};

}  // namespace hvdlite::timeline
