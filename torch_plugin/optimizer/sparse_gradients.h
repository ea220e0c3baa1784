// The sparse gradients of an optimizer: which they are, and their reduction.
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
  // Of this rank, as SparseRows() or NoSparseRows(); then the result, which is
  // undefined where no rank has any.
  at::Tensor rows;
  bool present = false;  // on this rank
};

// What the reduction of sparse gradients has in common with that of dense ones.
struct SparseReduction {
  AllreduceOptions allreduce;
  std::string name_prefix;
  int rank = 0;
};

// Collective. Which of an optimizer's gradients are sparse on some rank, by
// those that are on this one.
absl::StatusOr<std::vector<bool>> AgreeOnSparse(
    const SparseReduction& reduction, const std::vector<bool>& sparse_here);

// Collective, if there are any. Reduces `gradients`, of the same parameters on
// all ranks, in step `step`. InvalidArgument on all ranks where one of them
// `refuses` its gradients, or where they are in different steps; then `step` is
// the one to go on with. Operations of the public API are made here, one after
// the other. After any error `gradients` are as they were, or unspecified; the
// caller keeps those of its parameters, so that a repeated sum counts none
// twice.
absl::Status ReduceSparse(const SparseReduction& reduction, bool refuses,
                          std::vector<SparseGradient>& gradients,
                          uint32_t& step);

}  // namespace hvdlite::internal
