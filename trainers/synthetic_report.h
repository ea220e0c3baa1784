// The report of train_synthetic.
#pragma once

#include <cstdint>
#include <optional>

#include "trainers/benchmark/benchmark_recorder.h"
#include "trainers/synthetic/synthetic_flags.h"

namespace hvdlite::trainers {

// Throws InputError on all ranks if rank 0 cannot write to --report; makes its
// folder. So that it is known before the measurement, not after. Collective.
void CheckReport(const SyntheticFlags& flags);

// Appends the report to --report on rank 0, if that is given.
// `first_non_finite_batch` is that of any rank. Throws InputError on all ranks
// if it cannot be written. Collective.
void SaveReport(const SyntheticFlags& flags, const BenchmarkRecorder& recorder,
                const std::optional<int64_t>& first_non_finite_batch);

}  // namespace hvdlite::trainers
