// Differences between LibTorch 2.x and 1.13. That of autocast is in
// trainers/step.cc.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include <memory>
#include <utility>

namespace hvdlite::internal {

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
// LibTorch 2.3 and later have unsigned integers of 2, 4 and 8 bytes.
inline constexpr at::ScalarType kUint16 = at::kUInt16;
inline constexpr at::ScalarType kUint32 = at::kUInt32;
inline constexpr at::ScalarType kUint64 = at::kUInt64;
#else
// No tensor of an older LibTorch has such a type.
inline constexpr at::ScalarType kUint16 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint32 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint64 = at::ScalarType::Undefined;
#endif

// Holds the autograd node that accumulates a parameter's gradient: a
// std::shared_ptr, in newer 2.x a c10::intrusive_ptr.
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
// Afterwards autograd makes a new node for the parameter.
inline void ForgetGradAccumulator(const at::Tensor& parameter) {
  torch::autograd::impl::set_grad_accumulator(
      parameter, WeakAccumulator(GradAccumulator()));
}

}  // namespace hvdlite::internal
