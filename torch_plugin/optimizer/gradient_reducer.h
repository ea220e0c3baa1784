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
  // Prefix of the operations' names: "<prefix>.allreduce.<parameter>".
  std::string name_prefix;
  // op, compression, scales and process set.
  AllreduceOptions allreduce;
  // The request that follows from these. The other fields are set per
  // operation.
  negotiation::Request request;
  // Backward passes that add to a gradient before it is reduced.
  int64_t passes_per_step = 1;
  // Groups of parameters that are reduced together.
  GroupedIndices groups;
  bool sparse_as_dense = false;
  // Whether gradients lie in a GradientArena while they are reduced.
  bool gradient_as_fusion_view = false;
  // The ReplicaCheck compares these, too.
  NamedParameters buffers;
};

// Hooks may run in any thread; use one thread at a time for everything else. A
// hook throws only if backward() adds to a gradient that is already complete.
// Other errors of hooks are kept for Synchronize().
//
// One operation reduces one group as soon as all of its gradients are complete.
// A group of several gradients also sends a GradientPresence.
//
// A sparse gradient is found in the first backward pass, possibly only on some
// ranks. The first rank that finds it fails the group's operation with a text
// that all ranks recognise. In Synchronize() all ranks then agree which
// parameters are sparse from now on and repeat the group without them. They
// reduce the sparse ones at the end of each Synchronize().
//
// The StepCounter counts what was done with the gradients: 1 for FinishStep(),
// which has used them, and 2 for an Abandon() that drops some. So a step that
// one rank skips and another takes gives different counts. Abandon() without
// gradients, backward passes and Synchronize() do not count.
//
// At the end of Synchronize() all ranks are known to be in the same step. Then
// a ReplicaCheck compares their parameters if a check is due. Gradients are
// checked for NaN before they are reduced. For Config::nonfinite_gradients
// "skip" the results are checked again, since their bits are the same on all
// ranks.
class GradientReducer : public std::enable_shared_from_this<GradientReducer> {
 public:
  // Installs the hooks; the reducer's destructor removes them. Throws
  // c10::Error if the world is closed.
  static std::shared_ptr<GradientReducer> Create(
      const NamedParameters& parameters, GradientReducerOptions options);

  GradientReducer(const NamedParameters& parameters,
                  GradientReducerOptions options);

  // Submits all gradients that were not submitted (undefined ones as absent)
  // and waits for all operations. After success every gradient is reduced.
  // After an error nothing is in flight and every parameter is idle.
  absl::Status Synchronize();

  // Whether Synchronize() succeeded and no gradient can have changed since.
  bool synchronized() const;

  // Name of a parameter whose reduced gradient is not finite, so that all ranks
  // skip the step (Config::nonfinite_gradients). Empty: none.
  std::string not_finite() const;

  // The number of the present step, for messages.
  uint32_t present_step();

  // Makes synchronized() false: from now on gradients may change unnoticed, or
  // may not change on this rank alone.
  void ForgetSynchronized();

  // Call it when the gradients have been used. Ends the step and makes
  // everything idle.
  void FinishStep();

  // Calls Synchronize() if some gradient is complete, since other ranks may
  // wait for it, and ignores its errors. Then drops the gradients and makes
  // everything idle. Returns the result of the ReplicaCheck. Logs a warning if
  // the gradients seem to have been used before they were reduced.
  absl::Status Abandon();

 private:
  // Prefers an error of the world, since it explains the others.
  static void KeepFirst(absl::Status& kept, const absl::Status& status);

  void InstallHooks();
  // Makes an arena for the parameters' present sizes; none if there is too
  // little memory. Returns the errors of Coordinator::AllocateTensors; then
  // nothing has changed.
  absl::Status MakeArena() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `followed`: AfterAccumulation() will be called at the end.
  void BeforeAccumulation(size_t index, bool followed);
  // `accumulated` was added to the gradient.
  void AfterAccumulation(size_t index, const at::Tensor& accumulated);
  // Counts a pass that changes the parameter's gradient.
  void CountPass(GradientParameter& parameter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the parameter's gradient needs no further backward pass.
  bool Complete(const GradientParameter& parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Loads the group's operation and keeps its error. Returns false if it must
  // not be submitted.
  bool TryLoad(GradientGroup& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool InFlight(const GradientGroup& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Submits those of `groups` that are not in flight. Keeps an error.
  void Submit(absl::Span<const size_t> groups, Submission submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Submits those of `groups` that are not in flight, waits for them and takes
  // their results. Returns the groups that failed because some gradient is
  // sparse. Of the other errors, `status` gets that of the first group, which
  // is the same on all ranks.
  std::vector<size_t> Reduce(const std::vector<size_t>& groups,
                             absl::Status& status);
  // These are collective and return their error.
  absl::Status AgreeOnSparseParameters();
  absl::Status ReduceSparseGradients();
  absl::Status CheckReplicas();

  SparseReduction Sparse() const;

  // Begins to wait for new gradients. `reduced`: the present gradients are
  // results.
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
  // The parameters' values at the first backward pass of a round.
  ParameterSample sample_ ABSL_GUARDED_BY(mutex_);
  bool warned_of_early_change_ ABSL_GUARDED_BY(mutex_) = false;
  // See not_finite().
  std::string not_finite_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::internal
