// The ways in which a program would sum float32 tensors with MPI alone.
#pragma once

#include <mpi.h>

#include "absl/types/span.h"

namespace hvdlite::tools {

// Checks an MPI return code; throws std::runtime_error naming `call`.
void CheckMpi(int code, const char* call);

// One MPI_Allreduce in place; at most INT_MAX elements
// (std::invalid_argument).
void MpiAllreduce(absl::Span<float> data, MPI_Comm communicator);

// The same, in calls of at most `chunk_elements` elements.
void MpiAllreduceInChunks(absl::Span<float> data, int64_t chunk_elements,
                          MPI_Comm communicator);

// One call per tensor, in place.
void MpiAllreduceEach(absl::Span<const absl::Span<float>> tensors,
                      MPI_Comm communicator);

// The tensors, as if they lay one after the other, are copied into `buffer`,
// reduced there and copied back, as often as it takes to get all through: once
// if the buffer is large enough. Whatever their sizes, each call but the last
// has a full buffer.
void MpiAllreducePacked(absl::Span<const absl::Span<float>> tensors,
                        absl::Span<float> buffer, MPI_Comm communicator);

}  // namespace hvdlite::tools
