// Sums of floats, for tests.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/communicator.h"

namespace hvdlite::testing {

inline absl::Span<std::byte> BytesOf(absl::Span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

inline absl::Status SumFloats(collective::Communicator& communicator,
                              absl::Span<float> values) {
  return communicator.Allreduce(BytesOf(values), collective::DataType::kFloat32,
                                collective::ReduceOp::kSum);
}

}  // namespace hvdlite::testing
