#include <ATen/Functions.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>
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

Work SubmitBroadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options, bool in_place,
                     internal::Submission submission) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  // Counted before anything is refused, so that later names still agree.
  const std::string name =
      options.name().empty() ? world->NextName("broadcast") : options.name();
  const std::string what = absl::StrCat("broadcast '", name, "'");
  internal::CheckTensor(tensor, what);
  if (root_rank < 0 || root_rank >= world->topology().size) {
    internal::ThrowError(absl::StrCat(what, ": root_rank ", root_rank,
                                      " is not a rank; the world has ranks 0 "
                                      "to ",
                                      world->topology().size - 1));
  }
  negotiation::Request request;
  request.collective = negotiation::Collective::kBroadcast;
  request.dtype = internal::DataTypeOf(tensor);
  request.shape = tensor.sizes().vec();
  request.root_rank = root_rank;
  internal::OperationTensors tensors =
      internal::RowMajorTensors(tensor, in_place);
  request.name = name;
  return Work(internal::PendingOperation::Submit(
      world, std::move(request), std::move(tensors), submission));
}

class DifferentiableBroadcast
    : public torch::autograd::Function<DifferentiableBroadcast> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& tensor, int64_t root_rank,
                            const BroadcastOptions& options) {
    context->saved_data["name"] = options.name();
    context->saved_data["root"] = root_rank;
    return SubmitBroadcast(tensor, static_cast<int>(root_rank), options,
                           /*in_place=*/false,
                           internal::Submission::kSynchronous)
        .wait();
  }

  // Only the root's tensor had an effect, and it had one on every rank.
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& gradients) {
    const at::Tensor sum = allreduce(
        gradients.front(),
        AllreduceOptions()
            .name(absl::StrCat(context->saved_data["name"].toStringRef(),
                               ".backward"))
            .op(ReduceOp::Sum));
    const bool is_root = rank() == context->saved_data["root"].toInt();
    return {is_root ? sum : at::zeros_like(sum), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor broadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options) {
  if (!at::GradMode::is_enabled() || !tensor.defined() ||
      !tensor.requires_grad()) {
    return SubmitBroadcast(tensor, root_rank, options, /*in_place=*/false,
                           internal::Submission::kSynchronous)
        .wait();
  }
  BroadcastOptions named = options;
  if (named.name().empty()) {
    named.name(internal::CurrentWorld()->NextName("broadcast"));
  }
  return DifferentiableBroadcast::apply(tensor, static_cast<int64_t>(root_rank),
                                        named);
}

at::Tensor broadcast_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options) {
  return SubmitBroadcast(tensor, root_rank, options, /*in_place=*/true,
                         internal::Submission::kSynchronous)
      .wait();
}

Work broadcast_async(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options) {
  return SubmitBroadcast(tensor, root_rank, options, /*in_place=*/false,
                         internal::Submission::kAsynchronous);
}

Work broadcast_async_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options) {
  return SubmitBroadcast(tensor, root_rank, options, /*in_place=*/true,
                         internal::Submission::kAsynchronous);
}

void barrier(const ProcessSet& /*process_set: all ranks, so far*/) {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  negotiation::Request request;
  request.collective = negotiation::Collective::kBarrier;
  request.name = world->NextName("barrier");
  internal::ThrowIfError(
      internal::PendingOperation::Submit(world, std::move(request), {},
                                         internal::Submission::kSynchronous)
          ->Wait());
}

std::string broadcast_object(const std::string& bytes, int root_rank) {
  const std::string name =
      internal::CurrentWorld()->NextName("broadcast_object");
  const at::Tensor length =
      broadcast_(at::full({1}, static_cast<int64_t>(bytes.size()), at::kLong),
                 root_rank, BroadcastOptions().name(name + ".length"));
  at::Tensor content = at::empty({length.item<int64_t>()}, at::kByte);
  if (rank() == root_rank && !bytes.empty()) {
    std::memcpy(content.data_ptr(), bytes.data(), bytes.size());
  }
  broadcast_(content, root_rank, BroadcastOptions().name(name + ".content"));
  return {static_cast<const char*>(content.data_ptr()), content.nbytes()};
}

}  // namespace hvdlite
