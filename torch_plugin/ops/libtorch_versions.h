// What LibTorch 2.x has and 1.13 lacks or calls by another name; autocast's is
// in trainers/step.cc.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include <memory>
#include <utility>

namespace hvdlite::internal {

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
// From 2.3 on there are tensors of unsigned integers of 2, 4 and 8 bytes.
inline constexpr at::ScalarType kUint16 = at::kUInt16;
inline constexpr at::ScalarType kUint32 = at::kUInt32;
inline constexpr at::ScalarType kUint64 = at::kUInt64;
#else
// Before, no tensor has such a type.
inline constexpr at::ScalarType kUint16 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint32 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint64 = at::ScalarType::Undefined;
#endif

// Holds the node of autograd that accumulates a parameter's gradient: a
// std::shared_ptr, and in newer 2.x a c10::intrusive_ptr.
using GradAccumulator = decltype(torch::autograd::impl::grad_accumulator(
    std::declval<const at::Tensor&>()));
template <typename Node>
std::weak_ptr<Node> WeakAccumulator(const std::shared_ptr<Node>& accumulator) {
  return accumulator;
}
template <typename Node>
c10::weak_intrusive_ptr<Node> WeakAccumulator(
    const c10::intrusive_ptr<Node>& accumulator) {
  return c10::weak_intrusive_ptr<Node>(accumulator);
}
// Autograd makes a new one when it is asked for the parameter's next.
inline void ForgetGradAccumulator(const at::Tensor& parameter) {
  torch::autograd::impl::set_grad_accumulator(
      parameter, WeakAccumulator(GradAccumulator()));
}

}  // namespace hvdlite::internal
