#include <hvdlite/ops.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/pending_operation.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/tensor_layout.h"
#include "torch_plugin/throw_status.h"
#include "torch_plugin/world_state.h"

namespace hvdlite {
namespace {

Work SubmitAllreduce(const at::Tensor& tensor, const AllreduceOptions& options,
                     bool in_place, internal::Submission submission) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  // Counted before anything is refused, so that later names still agree.
  const std::string name =
      options.name().empty() ? world->NextName("allreduce") : options.name();
  const std::string what = absl::StrCat("allreduce '", name, "'");
  internal::CheckTensor(tensor, what);
  negotiation::Request request = internal::RequestOf(options, what);
  if (options.op() == ReduceOp::Average && tensor.scalar_type() == at::kBool) {
    internal::ThrowError(absl::StrCat(
        what, ": bool tensors have no Average; use Sum (logical or)"));
  }
  request.dtype = internal::DataTypeOf(tensor);
  request.shape = tensor.sizes().vec();
  internal::OperationTensors tensors =
      internal::RowMajorTensors(tensor, in_place);
  request.name = name;
  return Work(internal::PendingOperation::Submit(
      world, std::move(request), std::move(tensors), submission));
}

class DifferentiableAllreduce
    : public torch::autograd::Function<DifferentiableAllreduce> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& tensor,
                            const AllreduceOptions& options) {
    context->saved_data["name"] = options.name();
    context->saved_data["op"] = static_cast<int64_t>(options.op());
    context->saved_data["prescale"] = options.prescale_factor();
    context->saved_data["postscale"] = options.postscale_factor();
    return SubmitAllreduce(tensor, options, /*in_place=*/false,
                           internal::Submission::kSynchronous)
        .wait();
  }

  // The reduction is linear and the same on all ranks, hence its own transpose.
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& gradients) {
    const auto options =
        AllreduceOptions()
            .name(absl::StrCat(context->saved_data["name"].toStringRef(),
                               ".backward"))
            .op(static_cast<ReduceOp>(context->saved_data["op"].toInt()))
            .prescale_factor(context->saved_data["prescale"].toDouble())
            .postscale_factor(context->saved_data["postscale"].toDouble());
    return {allreduce(gradients.front(), options), at::Tensor()};
  }
};

}  // namespace

at::Tensor allreduce(const at::Tensor& tensor,
                     const AllreduceOptions& options) {
  if (!at::GradMode::is_enabled() || !tensor.defined() ||
      !tensor.requires_grad()) {
    return SubmitAllreduce(tensor, options, /*in_place=*/false,
                           internal::Submission::kSynchronous)
        .wait();
  }
  if (options.op() != ReduceOp::Average && options.op() != ReduceOp::Sum) {
    internal::ThrowError(absl::StrCat(
        "allreduce: ", internal::NameOf(options.op()),
        " has no gradient, but the tensor requires one; pass tensor.detach() "
        "or use torch::NoGradGuard"));
  }
  AllreduceOptions named = options;
  if (named.name().empty()) {
    named.name(internal::CurrentWorld()->NextName("allreduce"));
  }
  return DifferentiableAllreduce::apply(tensor, named);
}

at::Tensor allreduce_(const at::Tensor& tensor,
                      const AllreduceOptions& options) {
  return SubmitAllreduce(tensor, options, /*in_place=*/true,
                         internal::Submission::kSynchronous)
      .wait();
}

Work allreduce_async(const at::Tensor& tensor,
                     const AllreduceOptions& options) {
  return SubmitAllreduce(tensor, options, /*in_place=*/false,
                         internal::Submission::kAsynchronous);
}

Work allreduce_async_(const at::Tensor& tensor,
                      const AllreduceOptions& options) {
  return SubmitAllreduce(tensor, options, /*in_place=*/true,
                         internal::Submission::kAsynchronous);
}

}  // namespace hvdlite
