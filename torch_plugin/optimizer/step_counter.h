// StepCounter: the number of the training step of an optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "negotiation/world/world.h"

namespace hvdlite::internal {

// Operations carry the number, so that gradients of different steps are never
// reduced together. If the ranks' numbers differ, the operations fail on all
// ranks, and all continue with the same number. The count begins again after a
// join, since ranks that have joined took fewer steps. Use it in one thread at
// a time.
class StepCounter {
 public:
  explicit StepCounter(std::shared_ptr<World> world)
      : world_(std::move(world)), joins_(world_->joins()) {}

  uint32_t present() {
    if (const int64_t joins = world_->joins(); joins != joins_) {
      joins_ = joins;
      step_ = 1;
    }
    return step_;
  }
  // The number of joins when the present count began.
  int64_t joins() const { return joins_; }

  void Advance(uint32_t steps) { step_ = present() + steps; }
  // Call it after the ranks were in different steps.
  void ContinueWith(uint32_t step) {
    joins_ = world_->joins();
    step_ = step;
  }

 private:
  const std::shared_ptr<World> world_;
  int64_t joins_;
  uint32_t step_ = 1;
};

}  // namespace hvdlite::internal
