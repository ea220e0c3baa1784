#include "torch_plugin/optimizer/sparse_gradients.h"

#include <ATen/Functions.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Gives every rank the maximum of each number.
absl::Status ReduceToLargest(const SparseReduction& reduction,
                             const std::string& name, at::Tensor& numbers) {
  return StatusOfOperation([&] {
    allreduce_(numbers, AllreduceOptions()
                            .name(name)
                            .op(ReduceOp::Max)
                            .process_set(reduction.allreduce.process_set()));
  });
}

}  // namespace

absl::StatusOr<std::vector<bool>> AgreeOnSparse(
    const SparseReduction& reduction, const std::vector<bool>& sparse_here) {
  at::Tensor sparse =
      at::zeros({static_cast<int64_t>(sparse_here.size())}, at::kInt);
  auto* const numbers = sparse.data_ptr<int32_t>();
  for (size_t i = 0; i < sparse_here.size(); ++i) numbers[i] = sparse_here[i];
  HVDLITE_RETURN_IF_ERROR(ReduceToLargest(
      reduction, absl::StrCat(reduction.name_prefix, ".is_sparse"), sparse));
  return std::vector<bool>(numbers, numbers + sparse_here.size());
}

absl::Status ReduceSparse(const SparseReduction& reduction, bool refuses,
                          std::vector<SparseGradient>& gradients,
                          uint32_t& step) {
  const size_t count = gradients.size();
  if (count == 0) return absl::OkStatus();
  // For each parameter: whether some rank has its gradient. Then the largest
  // step, the smallest one (by its negative), and the last refusing rank plus
  // 1.
  at::Tensor present = at::zeros({static_cast<int64_t>(count) + 3}, at::kInt);
  auto* const numbers = present.data_ptr<int32_t>();
  for (size_t i = 0; i < count; ++i) numbers[i] = gradients[i].present;
  numbers[count] = static_cast<int32_t>(step);
  numbers[count + 1] = -numbers[count];
  numbers[count + 2] = refuses ? 1 + reduction.rank : 0;
  const std::string name = absl::StrCat(reduction.name_prefix, ".is_present");
  HVDLITE_RETURN_IF_ERROR(ReduceToLargest(reduction, name, present));

  const int32_t last_step = numbers[count];
  if (const int32_t first_step = -numbers[count + 1]; first_step != last_step) {
    step = static_cast<uint32_t>(last_step) + 1;
    return absl::InvalidArgumentError(absl::StrCat(
        "the ranks are in different steps with '", name, "', from step ",
        first_step, " to ", last_step,
        ": make the same calls of step() and zero_grad() on all ranks. To "
        "continue, call zero_grad() on all ranks and repeat the step. If only "
        "some ranks updated their parameters in the last step, call "
        "broadcast_parameters() before that."));
  }
  if (const int32_t refusing = numbers[count + 2]; refusing != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' cannot be done on rank ", refusing - 1,
                     " (and maybe on others): a sparse gradient has NaN or "
                     "infinity in step ",
                     last_step));
  }
  AllreduceOptions options = reduction.allreduce;
  return StatusOfOperation([&] {
    for (size_t i = 0; i < count; ++i) {
      options.name(absl::StrCat(reduction.name_prefix, ".sparse_allreduce.",
                                gradients[i].parameter));
      gradients[i].rows = numbers[i] == 0
                              ? at::Tensor()
                              : sparse_allreduce(gradients[i].rows, options);
    }
  });
}

}  // namespace hvdlite::internal
