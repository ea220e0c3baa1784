// GradientHooks: tells when autograd is about to add to a parameter's gradient,
// and when it has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace torch::autograd {
struct Node;
}  // namespace torch::autograd

namespace hvdlite::internal {

// Hooks of one parameter (a leaf tensor that requires a gradient); they are
// removed when this is destroyed, which must not happen during a backward pass.
// Both functions run in whichever thread runs backward().
class GradientHooks {
 public:
  // `before` may throw, which ends the backward pass; `after` must not throw.
  // Its argument, the gradient of this pass, may have become the parameter's.
  GradientHooks(at::Tensor parameter, std::function<void()> before,
                std::function<void(const at::Tensor&)> after);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  at::Tensor parameter_;
  // The parameter itself holds it weakly only.
  std::shared_ptr<torch::autograd::Node> accumulator_;
  unsigned before_hook_;
  uintptr_t after_hook_;
};

}  // namespace hvdlite::internal
