// broadcast(), broadcast_object() and allgather_object() for bytes of different
// lengths, and barrier() and join(), which have no tensors.
#include <ATen/Functions.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct BroadcastForm {
  bool in_place = false;
  bool differentiable = false;
};

OperationCall BroadcastCall(const at::Tensor& tensor, int root_rank,
                            const BroadcastOptions& options,
                            BroadcastForm form) {
  OperationCall call("broadcast", options.name(), options.process_set());
  call.request().collective = negotiation::Collective::kBroadcast;
  call.request().root_rank = root_rank;
  call.request().differentiable = form.differentiable;
  if (!call.members().contains(root_rank)) {
    call.SetLocalError(absl::StrCat("root_rank ", root_rank, " is not one of ",
                                    call.members().Describe()));
  }
  call.Prepare(tensor, internal::Rows::kNotNeeded, [&](const at::Tensor&) {
    if (form.in_place && internal::OverlapInMemory(tensor)) {
      return call.SetLocalError(
          "the tensor's elements overlap in memory and cannot be written in "
          "place; pass a clone");
    }
    call.Add(tensor, internal::RowMajorTensors(tensor, form.in_place));
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
    return call.RunKept().front().result;
  }

  // Only the root's tensor affects the results, and it affects those of every
  // rank.
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

const char* CharactersOf(const at::Tensor& bytes) {
  return static_cast<const char*>(bytes.data_ptr());
}

// A tensor of `length` bytes that starts with `bytes`.
at::Tensor TensorOf(const std::string& bytes, int64_t length) {
  at::Tensor tensor = at::empty({length}, at::kByte);
  if (!bytes.empty()) {
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  }
  return tensor;
}

}  // namespace

at::Tensor broadcast(const at::Tensor& tensor, int root_rank,
                     const BroadcastOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    return DifferentiableBroadcast::apply(tensor, root_rank, options);
  }
  return BroadcastCall(tensor, root_rank, options, {})
      .RunKept()
      .front()
      .result;
}

at::Tensor broadcast_(const at::Tensor& tensor, int root_rank,
                      const BroadcastOptions& options) {
  return BroadcastCall(tensor, root_rank, options, {.in_place = true})
      .RunKept()
      .front()
      .result;
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

std::string broadcast_object(const std::string& bytes, int root_rank,
                             const ProcessSet& process_set) {
  internal::OperationCall call("broadcast_object", /*name=*/"", process_set);
  const at::Tensor length = broadcast_(
      at::full({}, static_cast<int64_t>(bytes.size()), at::kLong), root_rank,
      BroadcastOptions()
          .name(absl::StrCat(call.name(), ".length"))
          .process_set(process_set));
  call.request().collective = negotiation::Collective::kBroadcast;
  call.request().root_rank = root_rank;
  at::Tensor content;
  call.Prepare([&] {
    const bool is_root = call.world().topology().rank == root_rank;
    content = TensorOf(is_root ? bytes : "", length.item<int64_t>());
    call.Add(content, {.input = content, .output = content, .result = content});
  });
  call.RunKept();
  return {CharactersOf(content), content.nbytes()};
}

std::vector<std::string> internal::AllgatherObject(
    const std::string& name, const std::string& bytes,
    const ProcessSet& process_set) {
  OperationCall call("allgather_object", name, process_set);
  call.request().collective = negotiation::Collective::kAllgather;
  call.Prepare([&] {
    call.AddRows(TensorOf(bytes, static_cast<int64_t>(bytes.size())));
  });
  const auto operation = call.Run();
  std::vector<std::string> objects;
  const char* next = CharactersOf(operation->result());
  for (const int64_t length : operation->rows().front()) {
    objects.emplace_back(next, static_cast<size_t>(length));
    next += length;
  }
  return objects;
}

std::vector<std::string> allgather_object(const std::string& bytes,
                                          const ProcessSet& process_set) {
  return internal::AllgatherObject(/*name=*/"", bytes, process_set);
}

void barrier(const ProcessSet& process_set) {
  internal::OperationCall call("barrier", /*name=*/"", process_set);
  call.request().collective = negotiation::Collective::kBarrier;
  call.RunKept();
}

int join() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("join", /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kJoin;
  const auto operation = call.Run();
  world->CountJoin();
  return static_cast<int>(operation->value());
}

}  // namespace hvdlite
