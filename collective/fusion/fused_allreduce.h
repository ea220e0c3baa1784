// Allreduce of many tensors at once.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/reduction.h"

namespace hvdlite::collective {

// Reduces every tensor into its output. All ranks pass tensors of the same
// sizes in the same order and the same reduction; tensors are aligned to their
// elements. A world of one copies (and scales, and rounds as compression
// would) without the buffer, and calls no hooks. Errors: InvalidArgument,
// before anything is communicated, when an input is neither empty nor of its
// output's size; the communicator's first error. Outputs are then unspecified.
absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// As FusedAllreduce, but combines the ranks' tensors by Adasum, each tensor by
// itself: two gradients that are orthogonal are added, two that are parallel
// are averaged. Maleki et al., "Scaling Distributed Training with Adaptive
// Summation" (2020), sections 3 and 4: a binary tree over the ranks whose pairs
// combine as
//
//   a (1 - a.b / (2 a.a)) + b (1 - a.b / (2 b.b))
//
// with scalar products in double; a term whose vector is zero is dropped.
//
// The tree has as many leaves as the largest power of two that is not above
// size(); `extra` are the ranks beyond. Leaf i is, for i < extra, the
// combination of ranks 2i and 2i+1; otherwise it is rank i + extra. Leaves 2j
// and 2j+1 combine to node j of the next level, nodes 2j and 2j+1 of that to
// node j of the one above, and so on to the root. So nodes are ranges of ranks
// and neighbours combine first. Vectors travel by recursive vector halving and
// distance doubling, and back.
//
// Prescaled inputs and the result of every combination are rounded to the wire
// type (that of `compression`, else `dtype`; see Wire). Combinations are
// computed in float32, in double where the wire type is float64. Empty inputs
// count as zero vectors. Needs a float type (InvalidArgument otherwise) and,
// while it runs, memory for twice the batch; reduction.op is not used. Every
// rank ends with the same bits.
absl::Status FusedAdasum(const FusionResources& resources,
                         const Reduction& reduction,
                         absl::Span<const FusedTensor> tensors,
                         const FusionHooks& hooks);

}  // namespace hvdlite::collective
