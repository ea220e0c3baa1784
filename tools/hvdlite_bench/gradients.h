// gradients: the tensors of a training step, through hvdlite's public API and
// by MPI alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/types/span.h"
#include "tools/hvdlite_bench/mpi_world.h"
#include "tools/hvdlite_bench/rounds.h"
#include "tools/hvdlite_bench/test_values.h"
#include "tools/hvdlite_bench/workloads.h"

namespace hvdlite::tools {

// Sums the workload's tensors in place: hvdlite submits each and waits for the
// last one first, or submits them as a group, or has an optimizer synchronize
// them as gradients, with and without a place in its memory; MPI copies them
// into one buffer and back, or does so in chunks of 1 MB, or reduces one after
// the other where it lies. For reference: MPI on one buffer without copying.
// Every sample begins with a run, not timed, whose result is checked.
//
// Needs hvdlite::init(). `world` and `values` must outlive the plan.
Plan GradientsPlan(const Workload& workload, const MpiWorld& world,
                   const TestValues& values);

// The elements of contiguous float32 tensors.
std::vector<absl::Span<float>> SpansOf(const std::vector<at::Tensor>& tensors);

void FillAll(const std::vector<absl::Span<float>>& spans,
             const TestValues& values);
int64_t CountAllWrong(const std::vector<absl::Span<float>>& spans,
                      const TestValues& values);

}  // namespace hvdlite::tools
