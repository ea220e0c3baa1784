// Checks of what is passed to the fused collectives, before anything is
// communicated. Tensors are named by their index in the batch.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// InvalidArgument unless every input has its output's size or, if
// `input_optional`, none, and that is a whole number of elements.
absl::Status CheckTensors(absl::Span<const FusedTensor> tensors,
                          size_t element_bytes, bool input_optional);

// InvalidArgument unless `dtype` is known.
absl::Status CheckDataType(DataType dtype);

// InvalidArgument unless `partition` distributes `bytes` bytes, those of the
// `what` ("input", say) of a tensor, over `size` ranks in whole elements.
absl::Status CheckPartition(size_t tensor, absl::string_view what, size_t bytes,
                            absl::Span<const size_t> partition, int size,
                            size_t element_bytes = 1);

// InvalidArgument unless the `what` of a tensor has the size that the partition
// gives to `rank`.
absl::Status CheckPart(size_t tensor, absl::string_view what, size_t bytes,
                       absl::Span<const size_t> partition, int rank);

}  // namespace hvdlite::collective
