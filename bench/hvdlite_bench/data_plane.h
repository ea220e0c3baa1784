// Uses hvdlite's data planes alone: creates them, and checks and times a sum of
// one array over all ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/hvdlite_bench/results.h"
#include "bench/hvdlite_bench/workloads.h"
#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"

namespace hvdlite::tools {

// Throws std::runtime_error with the message of an error.
void Check(const absl::Status& status);

// Creates the shared-memory data plane over all ranks of MPI_COMM_WORLD. An
// error is the same on all ranks. Collective.
absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateShm(
    const collective::AllreduceTable& table);

// Returns the index of the host of each rank of MPI_COMM_WORLD. Collective.
std::vector<int> NodeOfRank();

absl::Span<std::byte> BytesOf(absl::Span<float> data);
absl::Span<float> FloatsOf(absl::Span<std::byte> bytes);

// Returns how often an array of so many bytes is reduced per sample: until it
// has reduced `sample_bytes`, at least once, at most `most` times.
int RepeatsFor(int64_t bytes, int64_t sample_bytes, int most);

// Runs `sum` once on values with a known sum, then times `repeats` runs on
// zeros, which stay zeros. Collective.
Sample MeasureSum(const std::function<void(absl::Span<float>)>& sum,
                  absl::Span<float> data, int repeats, const TestValues& values,
                  MPI_Comm communicator);

}  // namespace hvdlite::tools
