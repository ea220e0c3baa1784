#include <hvdlite/ops.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AllreduceForm {
  bool in_place = false;
  bool differentiable = false;
};

// The call, complete except for the submission.
OperationCall AllreduceCall(const char* kind, at::TensorList tensors,
                            const AllreduceOptions& options,
                            AllreduceForm form) {
  OperationCall call(kind, options.name(), options.process_set());
  call.SetRequest(internal::RequestOf(options));
  call.request().differentiable = form.differentiable;
  if (form.differentiable && options.op() != ReduceOp::Average &&
      options.op() != ReduceOp::Sum) {
    call.SetLocalError(absl::StrCat(
        internal::NameOf(options.op()),
        " has no gradient, but the tensor requires one; pass tensor.detach() "
        "or use torch::NoGradGuard"));
  }
  call.Prepare(
      tensors, internal::Rows::kNotNeeded, [&](const at::Tensor& tensor) {
        std::string local_error = internal::ReductionError(
            call.request(), internal::DataTypeOf(tensor));
        if (!local_error.empty())
          return call.SetLocalError(tensors, tensor, local_error);
        // All tensors are known to be supported when this is called for the
        // last one.
        if (form.in_place && &tensor == &tensors.back() &&
            internal::OverlapInMemory(tensors)) {
          return call.SetLocalError(
              "the elements of a tensor, or tensors of the group, overlap in "
              "memory and cannot be reduced in place; pass clones");
        }
        call.Add(tensor, internal::RowMajorTensors(tensor, form.in_place));
      });
  return call;
}

Work Start(at::TensorList tensor, const AllreduceOptions& options,
           bool in_place) {
  return Work(
      AllreduceCall("allreduce", tensor, options, {.in_place = in_place})
          .Submit(Submission::kAsynchronous));
}

GroupWork StartGroup(at::TensorList tensors, const AllreduceOptions& options,
                     bool in_place) {
  return GroupWork(AllreduceCall("grouped_allreduce", tensors, options,
                                 {.in_place = in_place})
                       .Submit(Submission::kAsynchronous));
}

class DifferentiableAllreduce
    : public torch::autograd::Function<DifferentiableAllreduce> {
 public:
  static variable_list forward(AutogradContext* context,
                               const at::TensorList& tensors, const char* kind,
                               AllreduceOptions options) {
    OperationCall call =
        AllreduceCall(kind, tensors, options, {.differentiable = true});
    options.name(absl::StrCat(call.name(), ".backward"));
    internal::Save(context, std::move(options));
    return internal::ResultsOf(call.RunKept());
  }

  // The reduction is linear and the same on all ranks. So it is its own
  // transpose.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    return internal::MapGradients(
        gradients, /*others=*/2, [&](const variable_list& some) {
          return grouped_allreduce(some,
                                   internal::Saved<AllreduceOptions>(context));
        });
  }
};

}  // namespace

at::Tensor allreduce(const at::Tensor& tensor,
                     const AllreduceOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    return DifferentiableAllreduce::apply(at::TensorList(tensor), "allreduce",
                                          options)
        .front();
  }
  return AllreduceCall("allreduce", tensor, options, {})
      .RunKept()
      .front()
      .result;
}

at::Tensor allreduce_(const at::Tensor& tensor,
                      const AllreduceOptions& options) {
  return AllreduceCall("allreduce", tensor, options, {.in_place = true})
      .RunKept()
      .front()
      .result;
}

Work allreduce_async(const at::Tensor& tensor,
                     const AllreduceOptions& options) {
  return Start(tensor, options, /*in_place=*/false);
}

Work allreduce_async_(const at::Tensor& tensor,
                      const AllreduceOptions& options) {
  return Start(tensor, options, /*in_place=*/true);
}

std::vector<at::Tensor> grouped_allreduce(at::TensorList tensors,
                                          const AllreduceOptions& options) {
  if (internal::RecordsGradients(tensors)) {
    return DifferentiableAllreduce::apply(tensors, "grouped_allreduce",
                                          options);
  }
  return internal::ResultsOf(
      AllreduceCall("grouped_allreduce", tensors, options, {}).RunKept());
}

std::vector<at::Tensor> grouped_allreduce_(at::TensorList tensors,
                                           const AllreduceOptions& options) {
  return internal::ResultsOf(
      AllreduceCall("grouped_allreduce", tensors, options, {.in_place = true})
          .RunKept());
}

GroupWork grouped_allreduce_async(at::TensorList tensors,
                                  const AllreduceOptions& options) {
  return StartGroup(tensors, options, /*in_place=*/false);
}

GroupWork grouped_allreduce_async_(at::TensorList tensors,
                                   const AllreduceOptions& options) {
  return StartGroup(tensors, options, /*in_place=*/true);
}

}  // namespace hvdlite
