#include <ATen/Functions.h>
#include <hvdlite/ops.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collective/communicator.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Makes this member's uninitialised share of the result for `tensor`.
at::Tensor OutputFor(const at::Tensor& tensor,
                     const internal::Members& members) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.front() = collective::EvenRows(
      shape.front(), members.size())[static_cast<size_t>(members.rank)];
  return at::empty(shape, tensor.options());
}

OperationCall ReducescatterCall(const char* kind, at::TensorList tensors,
                                const ReducescatterOptions& options,
                                bool differentiable) {
  OperationCall call(kind, options.name(), options.process_set());
  call.SetRequest(internal::RequestOf(options));
  call.request().differentiable = differentiable;
  if (differentiable && options.op() != ReduceOp::Average &&
      options.op() != ReduceOp::Sum) {
    call.SetLocalError(absl::StrCat(
        internal::NameOf(options.op()),
        " has no gradient, but the tensor requires one; pass tensor.detach() "
        "or use torch::NoGradGuard"));
  }
  call.Prepare(tensors, internal::Rows::kNeeded, [&](const at::Tensor& tensor) {
    std::string local_error = internal::ReductionError(
        call.request(), internal::DataTypeOf(tensor));
    if (!local_error.empty())
      return call.SetLocalError(tensors, tensor, local_error);
    const at::Tensor output = OutputFor(tensor, call.members());
    call.Add(tensor, {.input = internal::RowMajor(tensor),
                      .output = output,
                      .result = output});
  });
  return call;
}

class DifferentiableReducescatter
    : public torch::autograd::Function<DifferentiableReducescatter> {
 public:
  static variable_list forward(AutogradContext* context,
                               const at::TensorList& tensors, const char* kind,
                               const ReducescatterOptions& options) {
    OperationCall call =
        ReducescatterCall(kind, tensors, options, /*differentiable=*/true);
    ForBackward kept;
    kept.options.name(absl::StrCat(call.name(), ".backward"))
        .process_set(options.process_set());
    kept.scale = options.prescale_factor() * options.postscale_factor();
    if (options.op() == ReduceOp::Average) {
      kept.scale /= call.members().size();
    }
    internal::Save(context, std::move(kept));
    return call.Run()->results();
  }

  // The gradients of every rank's rows are on the one rank that got these rows.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto kept = internal::Saved<ForBackward>(context);
    return internal::MapGradients(
        gradients, /*others=*/2, [&](variable_list some) {
          for (at::Tensor& gradient : some) {
            gradient = gradient.mul(kept.scale);
          }
          return grouped_allgather(some, kept.options);
        });
  }

 private:
  struct ForBackward {
    AllgatherOptions options;
    double scale = 1;
  };
};

}  // namespace

at::Tensor reducescatter(const at::Tensor& tensor,
                         const ReducescatterOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    return DifferentiableReducescatter::apply(at::TensorList(tensor),
                                              "reducescatter", options)
        .front();
  }
  return ReducescatterCall("reducescatter", tensor, options,
                           /*differentiable=*/false)
      .Run()
      ->result();
}

Work reducescatter_async(const at::Tensor& tensor,
                         const ReducescatterOptions& options) {
  return Work(ReducescatterCall("reducescatter", tensor, options,
                                /*differentiable=*/false)
                  .Submit(Submission::kAsynchronous));
}

std::vector<at::Tensor> grouped_reducescatter(
    at::TensorList tensors, const ReducescatterOptions& options) {
  if (internal::RecordsGradients(tensors)) {
    return DifferentiableReducescatter::apply(tensors, "grouped_reducescatter",
                                              options);
  }
  return grouped_reducescatter_async(tensors, options).wait();
}

GroupWork grouped_reducescatter_async(at::TensorList tensors,
                                      const ReducescatterOptions& options) {
  return GroupWork(ReducescatterCall("grouped_reducescatter", tensors, options,
                                     /*differentiable=*/false)
                       .Submit(Submission::kAsynchronous));
}

}  // namespace hvdlite
