#include "torch_plugin/ops/tensor_layout.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hvdlite::internal {
namespace {

// Memory from the first byte of a tensor to behind its last one.
struct Extent {
  uintptr_t begin;
  uintptr_t end;
};

Extent ExtentOf(const at::Tensor& tensor) {
  int64_t last_element = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last_element += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  return {.begin = begin,
          .end = begin + static_cast<uintptr_t>(last_element + 1) *
                             tensor.element_size()};
}

// The same for tensors whose extents form one piece of memory, by counting how
// often each byte is used.
bool BytesAreUsedTwice(const std::vector<at::Tensor>& tensors, Extent all) {
  const at::Tensor uses =
      at::zeros({static_cast<int64_t>(all.end - all.begin)}, at::kByte);
  for (const at::Tensor& tensor : tensors) {
    const auto bytes = static_cast<int64_t>(tensor.element_size());
    std::vector<int64_t> shape = tensor.sizes().vec();
    std::vector<int64_t> strides = tensor.strides().vec();
    for (int64_t& stride : strides) stride *= bytes;
    shape.push_back(bytes);
    strides.push_back(1);
    const at::Tensor used = uses.as_strided(
        shape, strides,
        static_cast<int64_t>(ExtentOf(tensor).begin - all.begin));
    if (used.any().item<bool>()) return true;
    used.fill_(1);
  }
  return false;
}

}  // namespace

at::Tensor RowMajor(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  // Zeros that autograd makes up have no memory.
  if (tensor._is_zerotensor()) {
    return at::zeros(tensor.sizes(), tensor.options().requires_grad(false));
  }
  // All return the tensor itself where nothing is to be done.
  const at::Tensor plain = tensor.requires_grad() ? tensor.detach() : tensor;
  return plain.contiguous().resolve_neg();
}

OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place) {
  const at::Tensor row_major = RowMajor(tensor);
  if (!in_place) {
    const at::Tensor output = at::empty_like(row_major);
    return {.input = row_major, .output = output, .result = output};
  }
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  const bool direct = row_major.data_ptr() == tensor.data_ptr();
  return {.input = row_major,
          .output = direct ? tensor : row_major,
          .result = tensor};
}

bool OverlapInMemory(at::TensorList tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sorted;
  for (const at::Tensor& tensor : tensors) {
    if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) return true;
    if (tensor.numel() > 0) sorted.push_back(tensor);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const at::Tensor& a, const at::Tensor& b) {
              return a.data_ptr() < b.data_ptr();
            });
  // Only neighbours whose extents touch each other need a closer look.
  for (size_t first = 0; first < sorted.size();) {
    Extent all = ExtentOf(sorted[first]);
    size_t last = first + 1;
    for (; last < sorted.size(); ++last) {
      const Extent extent = ExtentOf(sorted[last]);
      if (extent.begin >= all.end) break;
      all.end = std::max(all.end, extent.end);
    }
    if (last - first > 1 &&
        BytesAreUsedTwice({sorted.begin() + static_cast<int64_t>(first),
                           sorted.begin() + static_cast<int64_t>(last)},
                          all)) {
      return true;
    }
    first = last;
  }
  return false;
}

}  // namespace hvdlite::internal
