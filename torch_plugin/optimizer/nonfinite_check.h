// NonfiniteCheck: looks for NaN and infinity in gradients, as
// Config::nonfinite_gradients asks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "negotiation/world/world.h"

namespace hvdlite::internal {

// One thread at a time.
class NonfiniteCheck {
 public:
  // Of the optimizer that messages name.
  NonfiniteCheck(std::shared_ptr<World> world, std::string optimizer);

  // Why this rank's gradient is not to be reduced: empty, but for "error".
  // Warns of a gradient that is not finite, in few of many steps.
  std::string Refusal(const std::string& parameter, const at::Tensor& gradient,
                      uint32_t step);

  // Whether all ranks skip a step whose result is not finite.
  bool skips_steps() const { return mode_ == "skip"; }

 private:
  const std::shared_ptr<World> world_;
  const std::string optimizer_;
  const std::string mode_;
  // Steps in which this rank had a gradient that is not finite, and the last.
  uint64_t steps_ = 0;
  uint32_t last_step_ = 0;
};

}  // namespace hvdlite::internal
