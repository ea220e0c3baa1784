// The part of GradientReducer that reduces sparse gradients.
#include <ATen/Functions.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>

#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "torch_plugin/optimizer/gradient_reducer.h"

namespace hvdlite::internal {
namespace {

// What a public operation throws, as a status.
template <typename Call>
absl::Status StatusOf(Call&& call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const WorldBroken& error) {
    return absl::UnavailableError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return absl::InvalidArgumentError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace

absl::Status GradientReducer::AgreeOnSparseParameters() {
  at::Tensor sparse;
  {
    base::MutexLock lock(&mutex_);
    sparse = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kInt);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i].tensor.grad();
      sparse.data_ptr<int32_t>()[i] =
          gradient.defined() && gradient.is_sparse();
    }
  }
  const absl::Status status = StatusOf([&] {
    allreduce_(sparse,
               AllreduceOptions()
                   .name(absl::StrCat(options_.name_prefix, ".is_sparse"))
                   .op(ReduceOp::Max)
                   .process_set(options_.allreduce.process_set()));
  });
  if (!status.ok()) return status;
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (sparse.data_ptr<int32_t>()[i] != 0) parameters_[i].sparse = true;
  }
  return absl::OkStatus();
}

absl::Status GradientReducer::ReduceSparseGradients() {
  std::vector<size_t> sparse;
  std::vector<std::string> names;
  std::vector<at::Tensor> gradients;
  at::Tensor present;
  {
    base::MutexLock lock(&mutex_);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].sparse) sparse.push_back(i);
    }
    if (sparse.empty()) return absl::OkStatus();
    present = at::zeros({static_cast<int64_t>(sparse.size())}, at::kInt);
    for (size_t i = 0; i < sparse.size(); ++i) {
      const Parameter& parameter = parameters_[sparse[i]];
      const bool contributes = Contributes(parameter);
      names.push_back(parameter.name);
      present.data_ptr<int32_t>()[i] = contributes;
      gradients.push_back(contributes ? SparseRows(parameter.tensor.grad())
                                      : NoSparseRows(parameter.tensor));
    }
  }
  AllreduceOptions options = options_.allreduce;
  return StatusOf([&] {
    allreduce_(present,
               AllreduceOptions()
                   .name(absl::StrCat(options_.name_prefix, ".is_present"))
                   .op(ReduceOp::Max)
                   .process_set(options.process_set()));
    for (size_t i = 0; i < sparse.size(); ++i) {
      if (present.data_ptr<int32_t>()[i] == 0) continue;
      options.name(
          absl::StrCat(options_.name_prefix, ".sparse_allreduce.", names[i]));
      const at::Tensor result = sparse_allreduce(gradients[i], options);
      base::MutexLock lock(&mutex_);
      parameters_[sparse[i]].tensor.mutable_grad() = result;
    }
  });
}

}  // namespace hvdlite::internal
