// Gradients of operations on groups of tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

namespace hvdlite::internal {

// `gradients` with those of floating-point tensors mapped by `map`, as a group,
// and the others, of integers in the group, undefined; then `others` undefined
// ones, for the function's arguments that are not tensors.
template <typename Map>
torch::autograd::variable_list MapGradients(
    const torch::autograd::variable_list& gradients, size_t others, Map map) {
  torch::autograd::variable_list mapped;
  for (const at::Tensor& gradient : gradients) {
    if (gradient.is_floating_point()) mapped.push_back(gradient);
  }
  mapped = map(mapped);
  torch::autograd::variable_list result(gradients.size() + others);
  size_t next = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].is_floating_point()) result[i] = mapped[next++];
  }
  return result;
}

}  // namespace hvdlite::internal
