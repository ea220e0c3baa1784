#include "torch_plugin/optimizer/gradient_hooks.h"

#include <c10/core/ScalarType.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace hvdlite::internal {
namespace {

class AfterAccumulation final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(GradientHooks::After after)
      : after_(std::move(after)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& inputs) override {
    after_(inputs.front());
    return outputs;
  }

 private:
  GradientHooks::After after_;
};

// Autograd accepts hooks only on tensors that require a gradient. It keeps them
// when a tensor no longer does.
class Thawed {
 public:
  explicit Thawed(const at::Tensor& parameter)
      : parameter_(parameter), frozen_(!parameter.requires_grad()) {
    if (frozen_) parameter_.set_requires_grad(true);
  }
  ~Thawed() {
    if (frozen_) parameter_.set_requires_grad(false);
  }
  Thawed(const Thawed&) = delete;
  Thawed& operator=(const Thawed&) = delete;

 private:
  const at::Tensor& parameter_;
  const bool frozen_;
};

}  // namespace

bool GradientHooks::CanWatch(const at::Tensor& parameter) {
  return parameter.requires_grad() ||
         (c10::isFloatingType(parameter.scalar_type()) &&
          !parameter.is_inference());
}

GradientHooks::GradientHooks(at::Tensor parameter, Before before, After after)
    : parameter_(std::move(parameter)), after_(std::move(after)) {
  const Thawed thawed(parameter_);
  Watch();
  before_hook_ = parameter_.register_hook(
      [this, before = std::move(before)](const at::Tensor&) {
        before(torch::autograd::impl::try_get_grad_accumulator(parameter_) ==
               accumulator_);
      });
}

GradientHooks::~GradientHooks() {
  accumulator_->del_post_hook(after_hook_);
  parameter_.remove_hook(before_hook_);
}

void GradientHooks::Follow() {
  const bool present = torch::autograd::impl::try_get_grad_accumulator(
                           parameter_) == accumulator_;
  const bool fits =
      present && accumulator_->input_metadata(0).is_same_shape(parameter_);
  if (fits || !CanWatch(parameter_)) return;
  // The old node would reject gradients of the parameter's present shape.
  if (present) ForgetGradAccumulator(parameter_);
  const Thawed thawed(parameter_);
  Watch();
}

// A replaced node keeps its hook, since older graphs may still use the node.
void GradientHooks::Watch() {
  accumulator_ = torch::autograd::impl::grad_accumulator(parameter_);
  after_hook_ =
      accumulator_->add_post_hook(std::make_unique<AfterAccumulation>(after_));
}

}  // namespace hvdlite::internal
