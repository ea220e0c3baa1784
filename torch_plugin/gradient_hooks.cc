#include "torch_plugin/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace hvdlite::internal {
namespace {

class AfterAccumulation final : public torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void(const at::Tensor&)> after)
      : after_(std::move(after)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& inputs) override {
    after_(inputs.front());
    return outputs;
  }

 private:
  std::function<void(const at::Tensor&)> after_;
};

}  // namespace

GradientHooks::GradientHooks(at::Tensor parameter, std::function<void()> before,
                             std::function<void(const at::Tensor&)> after)
    : parameter_(std::move(parameter)),
      accumulator_(torch::autograd::impl::grad_accumulator(parameter_)),
      before_hook_(parameter_.register_hook(
          [before = std::move(before)](const at::Tensor&) { before(); })),
      after_hook_(accumulator_->add_post_hook(
          std::make_unique<AfterAccumulation>(std::move(after)))) {}

GradientHooks::~GradientHooks() {
  accumulator_->del_post_hook(after_hook_);
  parameter_.remove_hook(before_hook_);
}

}  // namespace hvdlite::internal
