#include <ATen/Functions.h>
#include <hvdlite/ops.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// `splits` as alltoall() takes them. A separate type, so that autograd does not
// treat them as an input of the function.
struct Splits {
  at::Tensor tensor;
};

bool IsSplitsType(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong;
}

void AddEqualSplits(OperationCall& call, const at::Tensor& tensor,
                    at::ScalarType splits_dtype) {
  const int size = call.members().size();
  if (tensor.size(0) % size != 0) {
    return call.SetLocalError(absl::StrCat(
        "the tensor's ", tensor.size(0), " rows cannot be split equally over ",
        size, " ranks; pass splits"));
  }
  call.AddSplitRows(
      tensor,
      std::vector<int64_t>(static_cast<size_t>(size), tensor.size(0) / size),
      splits_dtype);
}

void AddSplits(OperationCall& call, const at::Tensor& tensor,
               const at::Tensor& splits) {
  const int size = call.members().size();
  if (!splits.device().is_cpu() || splits.layout() != at::kStrided ||
      !IsSplitsType(splits)) {
    return call.SetLocalError(
        "splits must be a dense CPU tensor of int32 or int64");
  }
  if (splits.dim() != 1 || splits.numel() != size) {
    return call.SetLocalError(absl::StrCat(
        "splits must have one dimension and one element per rank, ", size,
        ", but have the shape [", absl::StrJoin(splits.sizes(), ", "), "]"));
  }
  const at::Tensor plain = splits.to(at::kLong).contiguous();
  const auto* const first = plain.data_ptr<int64_t>();
  std::vector<int64_t> rows(first, first + size);
  const std::string text = absl::StrCat("[", absl::StrJoin(rows, ", "), "]");
  int64_t left = tensor.size(0);
  for (const int64_t split : rows) {
    if (split < 0) {
      return call.SetLocalError(
          absl::StrCat("splits must not be negative: ", text));
    }
    // The value is at least -1 here, so it cannot overflow.
    left = std::max(left - std::min(split, left + 1), int64_t{-1});
  }
  if (left != 0) {
    return call.SetLocalError(
        absl::StrCat("splits must add up to the tensor's ", tensor.size(0),
                     " rows: ", text));
  }
  call.AddSplitRows(tensor, std::move(rows), splits.scalar_type());
}

OperationCall AlltoallCall(const at::Tensor& tensor, const Splits& splits,
                           const AlltoallOptions& options,
                           bool differentiable) {
  OperationCall call("alltoall", options.name(), options.process_set());
  call.request().collective = negotiation::Collective::kAlltoall;
  call.request().differentiable = differentiable;
  call.Prepare(tensor, internal::Rows::kNeeded, [&](const at::Tensor&) {
    const at::Tensor& given = splits.tensor;
    if (given.defined() && given.numel() > 0) {
      AddSplits(call, tensor, given);
    } else {
      AddEqualSplits(call, tensor,
                     given.defined() && IsSplitsType(given)
                         ? given.scalar_type()
                         : at::kInt);
    }
  });
  return call;
}

class DifferentiableAlltoall
    : public torch::autograd::Function<DifferentiableAlltoall> {
 public:
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& tensor, const Splits& splits,
                               AlltoallOptions options) {
    OperationCall call =
        AlltoallCall(tensor, splits, options, /*differentiable=*/true);
    options.name(absl::StrCat(call.name(), ".backward"));
    const auto operation = call.Run();
    // Copied because the caller may change the splits that it gets.
    internal::Save(
        context, ForBackward{std::move(options), operation->received_splits()});
    return {operation->result(), operation->received_splits()};
  }

  // Each row's gradient goes back to the rank that sent the row.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto kept = internal::Saved<ForBackward>(context);
    return {
        std::get<0>(alltoall(gradients.front(), kept.received, kept.options)),
        at::Tensor(), at::Tensor()};
  }

 private:
  struct ForBackward {
    AlltoallOptions options;
    at::Tensor received;
  };
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> alltoall(const at::Tensor& tensor,
                                            const at::Tensor& splits,
                                            const AlltoallOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    const variable_list results =
        DifferentiableAlltoall::apply(tensor, Splits{splits}, options);
    return {results[0], results[1]};
  }
  const auto operation =
      AlltoallCall(tensor, Splits{splits}, options, /*differentiable=*/false)
          .Run();
  return {operation->result(), operation->received_splits()};
}

AlltoallWork alltoall_async(const at::Tensor& tensor, const at::Tensor& splits,
                            const AlltoallOptions& options) {
  return AlltoallWork(
      AlltoallCall(tensor, Splits{splits}, options, /*differentiable=*/false)
          .Submit(Submission::kAsynchronous));
}

}  // namespace hvdlite
