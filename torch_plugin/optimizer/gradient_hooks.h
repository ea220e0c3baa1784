// GradientHooks: tells when autograd is about to add to a parameter's gradient,
// and when it has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "torch_plugin/ops/libtorch_versions.h"

namespace hvdlite::internal {

// Hooks of one parameter, a leaf tensor, which may be frozen. They are removed
// when this is destroyed, which must not happen during a backward pass. Both
// functions run in whichever thread runs backward().
//
// The parameter itself keeps the first one. The second is one of autograd's
// node that accumulates its gradient, which autograd replaces where the
// parameter's type changes (module->to(), set_data()): then nothing follows an
// accumulation until Follow() is called.
class GradientHooks {
 public:
  using Before = std::function<void(bool followed)>;
  using After = std::function<void(const at::Tensor& accumulated)>;

  // Whether autograd can be made to compute a gradient of it.
  static bool CanWatch(const at::Tensor& parameter);

  // `before` may throw, which ends the backward pass; `followed` tells whether
  // `after` is certain to follow. `after` must not throw. Its argument, the
  // gradient of this pass, may have become the parameter's.
  GradientHooks(at::Tensor parameter, Before before, After after);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // From now on `after` follows accumulations by the parameter's present node,
  // too. Not during a backward pass.
  void Follow();

 private:
  void Watch();

  const at::Tensor parameter_;
  const After after_;
  // The parameter itself holds it weakly only.
  GradAccumulator accumulator_;
  unsigned before_hook_ = 0;
  uintptr_t after_hook_ = 0;
};

}  // namespace hvdlite::internal
