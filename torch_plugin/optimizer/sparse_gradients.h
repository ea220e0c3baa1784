// Sparse gradients of an optimizer: finds them and reduces them.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvdlite::internal {

struct SparseGradient {
  std::string parameter;
  // This rank's rows, from SparseRows() or NoSparseRows(). After the reduction
  // the result, which is undefined if no rank has a gradient.
  at::Tensor rows;
  bool present = false;  // on this rank
};

// Options that the reductions of sparse and of dense gradients share.
struct SparseReduction {
  AllreduceOptions allreduce;
  std::string name_prefix;
  int rank = 0;
};

// Collective. Returns which of the optimizer's gradients are sparse on any
// rank. `sparse_here`: those that are sparse on this rank.
absl::StatusOr<std::vector<bool>> AgreeOnSparse(
    const SparseReduction& reduction, const std::vector<bool>& sparse_here);

// Reduces `gradients`, which belong to the same parameters on all ranks, in
// step `step`. Collective if there are any. Calls operations of the public API
// one after the other. Returns InvalidArgument on all ranks if one of them
// `refuses` its gradients, or if they are in different steps; `step` is then
// the step with which all continue. After an error `gradients` are unchanged or
// unspecified. The caller keeps the gradients of its parameters, so that a
// repeated sum counts none twice.
absl::Status ReduceSparse(const SparseReduction& reduction, bool refuses,
                          std::vector<SparseGradient>& gradients,
                          uint32_t& step);

}  // namespace hvdlite::internal
