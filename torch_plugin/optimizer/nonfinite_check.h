// NonfiniteCheck: checks gradients for NaN and infinity, as configured in
// Config::nonfinite_gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "negotiation/world/world.h"

namespace hvdlite::internal {

// Use it in one thread at a time.
class NonfiniteCheck {
 public:
  // `optimizer` is its name in messages.
  NonfiniteCheck(std::shared_ptr<World> world, std::string optimizer);

  // Why this rank's gradient must not be reduced; always empty unless the mode
  // is "error". Otherwise logs a warning about a gradient that is not finite,
  // but not in each step.
  std::string Refusal(const std::string& parameter, const at::Tensor& gradient,
                      uint32_t step);

  // Whether all ranks skip a step whose result is not finite.
  bool skips_steps() const { return mode_ == "skip"; }

 private:
  const std::shared_ptr<World> world_;
  const std::string optimizer_;
  const std::string mode_;
  // Number of steps in which this rank had a gradient that is not finite, and
  // the last such step.
  uint64_t steps_ = 0;
  uint32_t last_step_ = 0;
};

}  // namespace hvdlite::internal
