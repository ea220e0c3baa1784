#include <hvdlite/ops.h>

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"

namespace hvdlite {
namespace {

using internal::OperationCall;
using internal::Submission;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

OperationCall AllgatherCall(const char* kind, at::TensorList tensors,
                            const AllgatherOptions& options,
                            bool differentiable) {
  OperationCall call(kind, options.name(), options.process_set());
  call.request().collective = negotiation::Collective::kAllgather;
  call.request().differentiable = differentiable;
  call.Prepare(tensors, internal::Rows::kNeeded,
               [&](const at::Tensor& tensor) { call.AddRows(tensor); });
  return call;
}

class DifferentiableAllgather
    : public torch::autograd::Function<DifferentiableAllgather> {
 public:
  static variable_list forward(AutogradContext* context,
                               const at::TensorList& tensors, const char* kind,
                               const AllgatherOptions& options) {
    OperationCall call =
        AllgatherCall(kind, tensors, options, /*differentiable=*/true);
    ForBackward kept;
    kept.options.name(absl::StrCat(call.name(), ".backward"))
        .op(ReduceOp::Sum)
        .process_set(options.process_set());
    const int member = call.members().rank;
    const auto operation = call.Run();
    for (const std::vector<int64_t>& rows : operation->rows()) {
      kept.first_row.push_back(
          std::accumulate(rows.begin(), rows.begin() + member, int64_t{0}));
      kept.rows.push_back(rows[static_cast<size_t>(member)]);
    }
    internal::Save(context, std::move(kept));
    return operation->results();
  }

  // This rank's rows affected the result on every rank.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto kept = internal::Saved<ForBackward>(context);
    variable_list result = internal::MapGradients(
        gradients, /*others=*/2, [&](const variable_list& some) {
          return grouped_allreduce(some, kept.options);
        });
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!result[i].defined()) continue;
      result[i] = result[i].narrow(0, kept.first_row[i], kept.rows[i]);
    }
    return result;
  }

 private:
  struct ForBackward {
    AllreduceOptions options;
    // For each tensor: the index of this rank's first row, and the number of
    // rows.
    std::vector<int64_t> first_row;
    std::vector<int64_t> rows;
  };
};

}  // namespace

at::Tensor allgather(const at::Tensor& tensor,
                     const AllgatherOptions& options) {
  if (internal::RecordsGradients(tensor)) {
    return DifferentiableAllgather::apply(at::TensorList(tensor), "allgather",
                                          options)
        .front();
  }
  return AllgatherCall("allgather", tensor, options, /*differentiable=*/false)
      .Run()
      ->result();
}

Work allgather_async(const at::Tensor& tensor,
                     const AllgatherOptions& options) {
  return Work(
      AllgatherCall("allgather", tensor, options, /*differentiable=*/false)
          .Submit(Submission::kAsynchronous));
}

std::vector<at::Tensor> grouped_allgather(at::TensorList tensors,
                                          const AllgatherOptions& options) {
  if (internal::RecordsGradients(tensors)) {
    return DifferentiableAllgather::apply(tensors, "grouped_allgather",
                                          options);
  }
  return grouped_allgather_async(tensors, options).wait();
}

GroupWork grouped_allgather_async(at::TensorList tensors,
                                  const AllgatherOptions& options) {
  return GroupWork(AllgatherCall("grouped_allgather", tensors, options,
                                 /*differentiable=*/false)
                       .Submit(Submission::kAsynchronous));
}

}  // namespace hvdlite
