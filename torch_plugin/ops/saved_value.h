// Keeps a value of any type from an autograd function's forward to its
// backward.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace hvdlite::internal {

template <typename T>
struct SavedValue : torch::CustomClassHolder {
  explicit SavedValue(T v) : value(std::move(v)) {}
  T value;
};

void SaveHolder(torch::autograd::AutogradContext* context,
                c10::intrusive_ptr<torch::CustomClassHolder> holder);

// One value per context.
template <typename T>
void Save(torch::autograd::AutogradContext* context, T value) {
  SaveHolder(context, c10::make_intrusive<SavedValue<T>>(std::move(value)));
}

// A copy of what Save<T> has kept.
template <typename T>
T Saved(torch::autograd::AutogradContext* context) {
  return static_cast<const SavedValue<T>&>(
             *context->saved_data.at("value").toCapsule())
      .value;
}

}  // namespace hvdlite::internal
