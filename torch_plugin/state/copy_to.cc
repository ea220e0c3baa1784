#include "torch_plugin/state/copy_to.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <cstring>

#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

void CopyTo(const at::Tensor& tensor, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  if (!OverlapInMemory(tensor)) {
    tensor.detach().copy_(values);
    return;
  }
  int64_t length = 1;  // length of the memory in elements
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    length += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const at::Tensor places = at::arange(length, at::kLong)
                                .as_strided(tensor.sizes(), tensor.strides())
                                .reshape({-1});
  const at::Tensor flat = values.reshape({-1}).contiguous();
  // If several elements share a place, any one of them is written.
  at::Tensor memory = at::zeros({length}, values.options());
  memory.index_copy_(0, places, flat);
  const at::Tensor taken = memory.index_select(0, places);
  if (std::memcmp(taken.data_ptr(), flat.data_ptr(), flat.nbytes()) != 0) {
    ThrowError(
        "the tensor's elements overlap in memory, but elements that share "
        "memory would get different values");
  }
  memory = tensor.detach().as_strided({length}, {1});
  memory.index_copy_(0, places, flat);
}

}  // namespace hvdlite::internal
