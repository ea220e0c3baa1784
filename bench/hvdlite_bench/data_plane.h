// hvdlite's data planes by themselves: how they are made, and how a sum of one
// array over all ranks is checked and timed.
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

// Collective, over all ranks of MPI_COMM_WORLD; an error is the same on all.
absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateShm(
    const collective::AllreduceTable& table);

// Of each rank of MPI_COMM_WORLD, the index of its host. Collective.
std::vector<int> NodeOfRank();

absl::Span<std::byte> BytesOf(absl::Span<float> data);
absl::Span<float> FloatsOf(absl::Span<std::byte> bytes);

// How often an array of so many bytes is reduced for one sample: as often as
// `sample_bytes` holds it, at least once, at most `most` times.
int RepeatsFor(int64_t bytes, int64_t sample_bytes, int most);

// Runs `sum` once on values whose sum is known, then `repeats` times on zeros,
// which stay zeros: those are timed. Collective.
Sample MeasureSum(const std::function<void(absl::Span<float>)>& sum,
                  absl::Span<float> data, int repeats, const TestValues& values,
                  MPI_Comm communicator);

}  // namespace hvdlite::tools
