// Shared parts of the operations' autograd functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/macros/Macros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace hvdlite::internal {

// Keeps a value of any type from an autograd function's forward to its
// backward.
template <typename T>
struct SavedValue : torch::CustomClassHolder {
  explicit SavedValue(T v) : value(std::move(v)) {}
  T value;
};

// Not inlined, to avoid a false warning of GCC 12 about an overflow.
C10_NOINLINE inline void SaveHolder(
    torch::autograd::AutogradContext* context,
    c10::intrusive_ptr<torch::CustomClassHolder> holder) {
  context->saved_data["value"] = c10::IValue::make_capsule(std::move(holder));
}

// A context holds one value.
template <typename T>
void Save(torch::autograd::AutogradContext* context, T value) {
  SaveHolder(context, c10::make_intrusive<SavedValue<T>>(std::move(value)));
}

// Returns a copy of the value that Save<T> has kept.
template <typename T>
T Saved(torch::autograd::AutogradContext* context) {
  return static_cast<const SavedValue<T>&>(
             *context->saved_data.at("value").toCapsule())
      .value;
}

// Returns the gradients for an operation on a group of tensors. `map` maps the
// gradients of floating-point and complex tensors as a group. Gradients of
// integer tensors are undefined. `others` undefined gradients follow, for the
// function's arguments that are not tensors. All scales are real, so nothing
// has to be conjugated.
template <typename Map>
torch::autograd::variable_list MapGradients(
    const torch::autograd::variable_list& gradients, size_t others, Map map) {
  const auto has_gradient = [](const at::Tensor& gradient) {
    return gradient.is_floating_point() || gradient.is_complex();
  };
  torch::autograd::variable_list mapped;
  for (const at::Tensor& gradient : gradients) {
    if (has_gradient(gradient)) mapped.push_back(gradient);
  }
  mapped = map(mapped);
  torch::autograd::variable_list result(gradients.size() + others);
  size_t next = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (has_gradient(gradients[i])) result[i] = mapped[next++];
  }
  return result;
}

}  // namespace hvdlite::internal
