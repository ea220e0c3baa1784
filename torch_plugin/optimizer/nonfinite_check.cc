#include "torch_plugin/optimizer/nonfinite_check.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/optimizer/gradient_tensors.h"

namespace hvdlite::internal {

NonfiniteCheck::NonfiniteCheck(std::shared_ptr<World> world,
                               std::string optimizer)
    : world_(std::move(world)),
      optimizer_(std::move(optimizer)),
      mode_(world_->config().nonfinite_gradients) {}

std::string NonfiniteCheck::Refusal(const std::string& parameter,
                                    const at::Tensor& gradient, uint32_t step) {
  if (mode_ == "off" || IsFinite(gradient)) return "";
  std::string problem = absl::StrCat("the gradient of parameter '", parameter,
                                     "' has NaN or infinity in step ", step);
  if (mode_ == "error") return problem;
  const bool repeated = last_step_ == step && steps_ > 0;
  last_step_ = step;
  if (!repeated && std::has_single_bit(++steps_)) {
    world_->logger().Warning(absl::StrCat(
        "DistributedOptimizer '", optimizer_, "': ", problem,
        ", computed by this rank",
        steps_ > 1 ? absl::StrCat("; this happened in ", steps_ - 1,
                                  " earlier steps (not all are logged)")
                   : "",
        mode_ == "skip" ? "; all ranks skip the step"
                        : "; the parameters of all ranks will get NaN or "
                          "infinity, too. HVDLITE_NONFINITE_GRADIENTS=skip "
                          "skips such steps, =error makes them an error"));
  }
  return "";
}

}  // namespace hvdlite::internal
