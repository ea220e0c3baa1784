// GradientReducer: reduces the gradients of a set of parameters while
// backward() computes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"
#include "torch_plugin/optimizer/gradient_group.h"
#include "torch_plugin/optimizer/nonfinite_check.h"
#include "torch_plugin/optimizer/parameters.h"
#include "torch_plugin/optimizer/replica_check.h"
#include "torch_plugin/optimizer/sparse_gradients.h"
#include "torch_plugin/optimizer/step_counter.h"

namespace hvdlite::internal {

struct GradientReducerOptions {
  std::shared_ptr<World> world;
  // Of the operations' names: "<prefix>.allreduce.<parameter>".
  std::string name_prefix;
  // op, compression, scales and process set.
  AllreduceOptions allreduce;
  // What follows from these; the rest is filled in per operation.
  negotiation::Request request;
  // Backward passes that add to a gradient before it is reduced.
  int64_t passes_per_step = 1;
  // Parameters that are reduced together.
  GroupedIndices groups;
  bool sparse_as_dense = false;
  // Gradients lie in a GradientArena while they are reduced.
  bool gradient_as_fusion_view = false;
  // Compared by the ReplicaCheck.
  NamedParameters buffers;
};

// Hooks may run in any thread, everything else in one at a time. Hooks do not
// throw but for an accumulation into a gradient that is complete; their other
// errors are kept for Synchronize().
//
// One operation reduces one group, as soon as all of its gradients are
// complete. A group of several carries a GradientPresence along.
//
// Whether a gradient is sparse shows in the first backward pass, and maybe on
// some ranks only. Who sees it first refuses the group's operation with a text
// that all ranks know. In Synchronize() all ranks then agree on which
// parameters are sparse from then on, repeat the group without them, and reduce
// them at the end of each Synchronize().
//
// The StepCounter counts what was done with the gradients: one for
// FinishStep(), which has used them, and two for an Abandon() that drops some,
// so that a step which one rank skips and another takes does not look the same.
// Abandon() without any does not count, and neither do backward passes and
// Synchronize().
//
// At the end of Synchronize(), when the ranks are known to be in one step, a
// ReplicaCheck compares their parameters where it is due. Gradients are looked
// at before they are reduced, and for Config::nonfinite_gradients "skip" again
// as results, whose bits are the same on all ranks.
class GradientReducer : public std::enable_shared_from_this<GradientReducer> {
 public:
  // Installs the hooks, which are removed when the reducer is destroyed. Throws
  // c10::Error where the world is closed.
  static std::shared_ptr<GradientReducer> Create(
      const NamedParameters& parameters, GradientReducerOptions options);

  GradientReducer(const NamedParameters& parameters,
                  GradientReducerOptions options);

  // Submits what has not been submitted (gradients that are not defined count
  // as absent) and waits for everything. Afterwards every gradient is reduced,
  // or, after an error, nothing is in flight and every parameter is idle.
  absl::Status Synchronize();

  // Whether Synchronize() succeeded and no gradient can have been accumulated
  // since.
  bool synchronized() const;

  // A parameter whose result of Synchronize() is not finite, so that all ranks
  // are to skip the step (Config::nonfinite_gradients); empty: none.
  std::string not_finite() const;

  // The number of the present step, for messages.
  uint32_t present_step();

  // Whatever synchronized() says: gradients may change unnoticed from now on,
  // or not at all on this rank alone.
  void ForgetSynchronized();

  // Everything is idle again; to be called when the gradients have been used.
  // The step is over.
  void FinishStep();

  // If some gradient is complete, so that other ranks may wait for it:
  // Synchronize(), whatever comes of it. Then everything is idle again, and the
  // gradients are dropped. Returns what the ReplicaCheck found. Warns where
  // the gradients seem to have been used without having been reduced.
  absl::Status Abandon();

 private:
  // The world's error where there is one, since it explains the others.
  static void KeepFirst(absl::Status& kept, const absl::Status& status);

  void InstallHooks();
  // For the sizes that the parameters have now; none where there is no memory.
  // Errors, after which nothing has changed: as Coordinator::AllocateTensors.
  absl::Status MakeArena() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `followed`: AfterAccumulation() comes when it is over.
  void BeforeAccumulation(size_t index, bool followed);
  // `accumulated` went into the gradient.
  void AfterAccumulation(size_t index, const at::Tensor& accumulated);
  // Its gradient changes.
  void CountPass(GradientParameter& parameter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the parameter waits for no further backward pass.
  bool Complete(const GradientParameter& parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Loads the group's operation; keeps its error. False: it is not to be
  // submitted.
  bool TryLoad(GradientGroup& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InFlight(const GradientGroup& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of `groups` that are not in flight. Keeps its error.
  void Submit(absl::Span<const size_t> groups, Submission submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Submits `groups` where they are not in flight, waits for them and takes
  // their results. Returns those whose operation failed because some gradient
  // is sparse; of other errors that of the first group goes to `status`, which
  // is the same one on all ranks.
  std::vector<size_t> Reduce(const std::vector<size_t>& groups,
                             absl::Status& status);
  // All are collective and return their error.
  absl::Status AgreeOnSparseParameters();
  absl::Status ReduceSparseGradients();
  absl::Status CheckReplicas();

  SparseReduction Sparse() const;

  // Gradients are awaited anew; they are results, or no more used.
  void BeginRound(bool reduced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GradientReducerOptions options_;
  ReplicaCheck replicas_;
  mutable base::Mutex mutex_;
  std::vector<GradientParameter> parameters_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GradientGroup>> groups_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GradientArena> arena_ ABSL_GUARDED_BY(mutex_);
  // Indices of the groups in flight, in the order of submission.
  std::vector<size_t> in_flight_ ABSL_GUARDED_BY(mutex_);
  // First error of a hook.
  absl::Status kept_error_ ABSL_GUARDED_BY(mutex_);
  bool synchronized_ ABSL_GUARDED_BY(mutex_) = false;
  StepCounter steps_ ABSL_GUARDED_BY(mutex_);
  NonfiniteCheck finite_ ABSL_GUARDED_BY(mutex_);
  // As the first backward pass of a round found the parameters.
  ParameterSample sample_ ABSL_GUARDED_BY(mutex_);
  bool warned_of_early_change_ ABSL_GUARDED_BY(mutex_) = false;
  // See not_finite().
  std::string not_finite_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::internal
