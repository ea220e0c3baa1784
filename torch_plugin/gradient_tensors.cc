#include "torch_plugin/gradient_tensors.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "torch_plugin/tensor_checks.h"

namespace hvdlite::internal {

at::Tensor EmptyGradient(const at::Tensor& parameter) {
  if (!parameter.is_non_overlapping_and_dense()) {
    return at::empty(parameter.sizes(),
                     parameter.options().requires_grad(false));
  }
  return at::empty_strided(parameter.sizes(), parameter.strides(),
                           parameter.options().requires_grad(false));
}

OperationTensors PresentGradient(const at::Tensor& parameter,
                                 const at::Tensor& gradient,
                                 size_t references) {
  const at::NoGradGuard no_grad;
  if (SameLayout(gradient, parameter) &&
      gradient.storage().use_count() <= references) {
    return {.input = gradient, .output = gradient, .result = gradient};
  }
  const at::Tensor copy = EmptyGradient(parameter);
  copy.copy_(gradient);
  return {.input = copy, .output = copy, .result = gradient};
}

size_t ReferencesInHook(const at::Tensor& gradient,
                        const at::Tensor& accumulated) {
  // A tensor that somebody else has, too, may be read when the hook is over.
  if (!gradient.defined() || !gradient.has_storage() ||
      !accumulated.defined() || !accumulated.has_storage() ||
      accumulated.use_count() != 1 || !accumulated.is_alias_of(gradient)) {
    return 1;
  }
  const bool has_base =
      accumulated.is_view() && accumulated._base().use_count() == 1;
  return has_base ? 3 : 2;
}

OperationTensors AbsentGradient(const at::Tensor& parameter) {
  const at::Tensor output = EmptyGradient(parameter);
  return {.input = {}, .output = output, .result = output};
}

OperationTensors ZeroGradient(const at::Tensor& parameter) {
  const at::Tensor zeros = EmptyGradient(parameter).zero_();
  return {.input = zeros, .output = zeros, .result = zeros};
}

at::Tensor SparseRows(const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const int64_t sparse_dimensions = std::min<int64_t>(gradient.dim(), 1);
  if (gradient.is_sparse() && gradient.sparse_dim() == sparse_dimensions) {
    return gradient.detach();
  }
  const at::Tensor dense =
      gradient.layout() == at::kStrided ? gradient : gradient.to_dense();
  return dense.detach().to_sparse(sparse_dimensions);
}

at::Tensor NoSparseRows(const at::Tensor& parameter) {
  const int64_t sparse_dimensions = std::min<int64_t>(parameter.dim(), 1);
  std::vector<int64_t> values = parameter.sizes().vec();
  if (values.empty()) {
    values = {0};
  } else {
    values.front() = 0;
  }
  return at::sparse_coo_tensor(
      at::empty({sparse_dimensions, 0}, at::kLong),
      at::empty(values, parameter.options().requires_grad(false)),
      parameter.sizes(),
      parameter.options().layout(at::kSparse).requires_grad(false));
}

GradientPresence::GradientPresence(const std::vector<bool>& present, float unit,
                                   bool each_by_itself) {
  at::Tensor all =
      at::zeros({static_cast<int64_t>(present.size())}, at::kFloat);
  for (size_t i = 0; i < present.size(); ++i) {
    if (present[i]) all.data_ptr<float>()[i] = unit;
  }
  if (each_by_itself) {
    tensors_ = all.split(1);
  } else {
    tensors_.push_back(all);
  }
}

std::vector<OperationTensors> GradientPresence::Tensors(bool absent) const {
  std::vector<OperationTensors> result;
  for (const at::Tensor& tensor : tensors_) {
    result.push_back({.input = absent ? at::Tensor() : tensor,
                      .output = tensor,
                      .result = tensor});
  }
  return result;
}

bool GradientPresence::AnywherePresent(size_t index) const {
  const at::Tensor& tensor =
      tensors_.size() == 1 ? tensors_.front() : tensors_[index];
  return tensor.data_ptr<float>()[tensors_.size() == 1 ? index : 0] != 0;
}

}  // namespace hvdlite::internal
