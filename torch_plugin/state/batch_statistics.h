// Mean and variance per channel over the batches of several ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>

#include <cstdint>
#include <string>

namespace hvdlite::internal {

// The type in which statistics of such inputs are computed.
at::ScalarType StatisticsType(at::ScalarType input);

// `values` [C], one per channel, in the shape that goes with `input`
// [N, C, ...].
at::Tensor PerChannel(const at::Tensor& values, const at::Tensor& input);

struct BatchStatistics {
  at::Tensor mean;  // [C], float64
  // Sum of the squared differences from the mean; [C], float64.
  at::Tensor squares;
  int64_t count = 0;  // of values per channel

  at::Tensor Variance() const;          // biased; 0 where there is no value
  at::Tensor UnbiasedVariance() const;  // at least two values
};

// Of this rank's `input` [N, C, ...] alone.
BatchStatistics LocalStatistics(const at::Tensor& input);

// Of the batches of all ranks of the process set; collective, named `name`.
// Throws c10::Error, on every rank, if `refusal` (why this rank's `input`
// cannot be used) is not empty on one, if there is a single value per channel,
// or if a gradient is wanted with respect to some ranks' inputs only.
BatchStatistics GatherStatistics(const at::Tensor& input,
                                 const std::string& refusal,
                                 const std::string& name,
                                 const ProcessSet& process_set);

}  // namespace hvdlite::internal
