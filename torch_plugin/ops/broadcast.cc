#include <ATen/Functions.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/saved_value.h"
#include "torch_plugin/ops/tensor_checks.h"
#include "torch_plugin/ops/tensor_layout.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Form {
  bool in_place = false;
  bool differentiable = false;
};

OperationCall BroadcastCall(const at::Tensor& tensor, int root_rank,
                            const BroadcastOptions& options, Form form) {
  OperationCall call("broadcast", options.name(), options.process_set());
  call.request().collective = negotiation::Collective::kBroadcast;
  call.request().root_rank = root_rank;
  call.request().differentiable = form.differentiable;
  if (!call.members().contains(root_rank)) {
    call.Refuse(absl::StrCat("root_rank ", root_rank, " is not one of ",
                             call.members().Describe()));
  }
  call.Prepare(tensor, internal::Rows::kNotNeeded, [&](const at::Tensor&) {
    if (form.in_place && internal::OverlapInMemory(tensor)) {
      return call.Refuse(
          "the tensor's elements overlap in memory and cannot be written in "
          "place; pass a clone");
    }
    call.Add(internal::RowMajorSpec(tensor),
             internal::RowMajorTensors(tensor, form.in_place));
  });
  return call;
}

class DifferentiableBroadcast
    : public torch::autograd::Function<DifferentiableBroadcast> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor,
                            int root_rank, const BroadcastOptions& options) {
    OperationCall call =
        BroadcastCall(tensor, root_rank, options, {.differentiable = true});
    ForBackward kept;
    kept.options.name(absl::StrCat(call.name(), ".backward"))
        .op(ReduceOp::Sum)
        .process_set(options.process_set());
    kept.is_root = call.world().topology().rank == root_rank;
    internal::Save(context, std::move(kept));
    return call.Run()->result();
  }

  // Only the root's tensor had an effect, and it had one on every rank.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto kept = internal::Saved<ForBackward>(context);
    const at::Tensor sum = allreduce(gradients.front(), kept.options);
    return {kept.is_root ? sum : at::zeros_like(sum), at::Tensor(),
            at::Tensor()};
  }

 private:
  struct ForBackward {
    AllreduceOptions options;
    bool is_root = false;
  };
};

}  // namespace

at::Tensor broadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    return DifferentiableBroadcast::apply(tensor, root_rank, options);
  }
  return BroadcastCall(tensor, root_rank, options, {}).Run()->result();
}

at::Tensor broadcast_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options) {
  return BroadcastCall(tensor, root_rank, options, {.in_place = true})
      .Run()
      ->result();
}

Work broadcast_async(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options) {
  return Work(BroadcastCall(tensor, root_rank, options, {})
                  .Submit(Submission::kAsynchronous));
}

Work broadcast_async_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options) {
  return Work(BroadcastCall(tensor, root_rank, options, {.in_place = true})
                  .Submit(Submission::kAsynchronous));
}

}  // namespace hvdlite
