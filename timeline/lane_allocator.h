// LaneAllocator: gives each tensor in flight a lane of its own.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "timeline/trace_event.h"

namespace hvdlite::timeline {

// Always hands out the lowest free lane, so that a trace has no more lanes than
// tensors were in flight at once. Not thread-safe.
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
