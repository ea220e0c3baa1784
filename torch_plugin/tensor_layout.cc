#include "torch_plugin/tensor_layout.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>

namespace hvdlite::internal {

OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place) {
  const at::NoGradGuard no_grad;
  // Both return the tensor itself where nothing is to be done.
  const at::Tensor plain = tensor.detach();
  const at::Tensor row_major = plain.contiguous().resolve_neg();
  if (!in_place) {
    const at::Tensor output = at::empty_like(row_major);
    return {.input = row_major, .output = output, .result = output};
  }
  at::assert_no_internal_overlap(tensor);
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  const bool direct = row_major.is_same(plain);
  return {.input = row_major,
          .output = direct ? tensor : row_major,
          .result = tensor};
}

}  // namespace hvdlite::internal
