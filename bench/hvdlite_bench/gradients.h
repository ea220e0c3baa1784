// The tensors of a training step, through hvdlite's public API and by MPI
// alone: what gradients_mode.cc and gradient_steps.cc share.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/distributed_optimizer.h>

#include <vector>

#include "absl/types/span.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/rounds.h"
#include "bench/hvdlite_bench/workloads.h"

namespace hvdlite::tools {

// Steps of training without the computation.
//
// A step is zero_grad(); backward(), which makes every gradient in memory of
// its own and accumulates it into .grad; and the sum over all ranks: by
// DistributedOptimizer, with and without gradient_as_fusion_view, or by MPI
// after backward, in one buffer, in chunks of 1 MB or one by one. For
// reference: without any synchronisation, which is what all of them add to.
// Every sample begins with a step, not timed, whose gradients are checked.
//
// A DistributedOptimizer that refuses its options is skipped with its message.
// Needs hvdlite::init(). `world` and `values` must outlive the plan.
Plan GradientStepsPlan(const Workload& workload, const MpiWorld& world,
                       const TestValues& values);

// Of SGD, over parameters whose names are their numbers.
DistributedOptimizer OptimizerOf(const std::vector<at::Tensor>& parameters,
                                 const DistributedOptimizerOptions& options);

std::vector<absl::Span<float>> GradientSpans(
    const std::vector<at::Tensor>& parameters);

// The elements of contiguous float32 tensors.
std::vector<absl::Span<float>> SpansOf(const std::vector<at::Tensor>& tensors);

int64_t CountAllWrong(const std::vector<absl::Span<float>>& spans,
                      const TestValues& values);

}  // namespace hvdlite::tools
