// Reduces the tensors of a training step with hvdlite's public API and with MPI
// only: the common part of gradients_mode.cc and gradient_steps.cc.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/distributed_optimizer.h>

#include <vector>

#include "absl/types/span.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/rounds.h"
#include "bench/hvdlite_bench/workloads.h"

namespace hvdlite::tools {

// Measures steps of training without the computation.
//
// A step is zero_grad(), backward(), and the sum over all ranks. backward()
// creates every gradient in new memory and accumulates it into .grad.
// DistributedOptimizer computes the sum, with and without
// gradient_as_fusion_view. Or MPI computes it after backward: in one buffer, in
// chunks of 1 MB, or one by one. The reference has no synchronisation, which is
// the common part of all. Every sample begins with an untimed step whose
// gradients are checked.
//
// If DistributedOptimizer rejects its options, it is skipped with its message.
// Needs hvdlite::init(). `world` and `values` must outlive the plan.
Plan GradientStepsPlan(const Workload& workload, const MpiWorld& world,
                       const TestValues& values);

// Creates an optimizer for SGD; the parameters' names are their numbers.
DistributedOptimizer OptimizerOf(const std::vector<at::Tensor>& parameters,
                                 const DistributedOptimizerOptions& options);

std::vector<absl::Span<float>> GradientSpans(
    const std::vector<at::Tensor>& parameters);

// Returns the elements of contiguous float32 tensors.
std::vector<absl::Span<float>> SpansOf(const std::vector<at::Tensor>& tensors);

int64_t CountAllWrong(const std::vector<absl::Span<float>>& spans,
                      const TestValues& values);

}  // namespace hvdlite::tools
