// Batch normalisation with statistics that are given, and its gradient where
// these depend on the inputs of all ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>

#include <string>

#include "torch_plugin/state/batch_statistics.h"

namespace hvdlite::internal {

// (input - mean) / sqrt(variance + eps) * weight + bias per channel, of
// `input`'s dtype; weight and bias may be undefined. The statistics are
// constants for autograd.
at::Tensor Normalize(const at::Tensor& input, const at::Tensor& mean,
                     const at::Tensor& variance, const at::Tensor& weight,
                     const at::Tensor& bias, double eps);

// As above with the statistics of the inputs of all ranks of the process set.
// If `input` requires a gradient, which it does on all ranks or on none,
// backward is collective, named "<name>.backward".
at::Tensor NormalizeSynchronized(const at::Tensor& input,
                                 const at::Tensor& weight,
                                 const at::Tensor& bias,
                                 const BatchStatistics& statistics, double eps,
                                 const std::string& name,
                                 const ProcessSet& process_set);

}  // namespace hvdlite::internal
