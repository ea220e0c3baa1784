// GradientHooks: functions that are called before and after autograd adds to a
// parameter's gradient.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "torch_plugin/ops/libtorch_versions.h"

namespace hvdlite::internal {

// Hooks of one parameter, a leaf tensor, which may be frozen. The destructor
// removes them; do not destroy this object during a backward pass. Both
// functions run in the thread that runs backward().
//
// The parameter itself keeps the first hook. The second one belongs to the
// autograd node that accumulates the gradient. Autograd replaces this node when
// the parameter's type changes (module->to(), set_data()). Then `after` is not
// called any more until Follow() is called.
class GradientHooks {
 public:
  using Before = std::function<void(bool followed)>;
  using After = std::function<void(const at::Tensor& accumulated)>;

  // Whether autograd can compute a gradient of the parameter.
  static bool CanWatch(const at::Tensor& parameter);

  // `before` may throw, which ends the backward pass. Its argument `followed`
  // is true if `after` is certain to be called. `after` must not throw. Its
  // argument is the gradient of this pass, which may have become the
  // parameter's gradient.
  GradientHooks(at::Tensor parameter, Before before, After after);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Installs `after` on the parameter's present node, too. Do not call it
  // during a backward pass.
  void Follow();

 private:
  void Watch();

  const at::Tensor parameter_;
  const After after_;
  // The parameter itself refers to it only weakly.
  GradAccumulator accumulator_;
  unsigned before_hook_ = 0;
  uintptr_t after_hook_ = 0;
};

}  // namespace hvdlite::internal
