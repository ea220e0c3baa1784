// GradientReducer: reduces the gradients of a set of parameters while
// backward() computes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"
#include "torch_plugin/optimizer/gradient_hooks.h"
#include "torch_plugin/optimizer/gradient_tensors.h"
#include "torch_plugin/optimizer/parameters.h"
#include "torch_plugin/optimizer/replica_check.h"

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
// Operations carry the number of the step, so that gradients of different steps
// never meet: where the ranks differ about it, their operations fail on all of
// them, which all go on with one and the same number. It counts what was done
// with the gradients: one for FinishStep(), which has used them, and two for an
// Abandon() that drops some, so that a step which one rank skips and another
// takes does not look the same. Abandon() without any does not count, and
// neither do backward passes and Synchronize(). After a join it begins anew,
// since ranks that have joined took fewer steps.
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
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    size_t group = 0;
    // Backward passes since the last step or synchronize().
    int64_t passes = 0;
    // One of them was counted as it began, and may be going on: nothing tells
    // when it ends, and Synchronize() reduces the gradient.
    bool unfollowed = false;
    bool in_flight = false;
    // The gradient is a result, and has not changed since.
    bool reduced = false;
    // Submitted without a gradient; the result becomes the gradient if any rank
    // has one.
    bool absent = false;
    // On all ranks for ever.
    bool sparse = false;
    // How many tensors may refer to the gradient's memory while it is reduced
    // there: itself, and in its hook what autograd made it of and drops then.
    size_t references = 1;
    std::unique_ptr<GradientHooks> hooks;
  };

  struct Group {
    std::vector<size_t> members;
    std::unique_ptr<RepeatedOperation> operation;
    bool in_flight = false;
    std::vector<size_t> submitted;  // the members that it reduces
    std::optional<GradientPresence> presence;
  };

  // In the local errors of operations that all ranks then repeat without the
  // sparse gradients.
  static constexpr char kIsSparse[] =
      "has a sparse gradient, to be reduced by itself";

  // The world's error where there is one, since it explains the others.
  static void KeepFirst(absl::Status& kept, const absl::Status& status);

  void InstallHooks();
  // For the sizes that the parameters have now. None, with a warning, where
  // there is no memory: gradients then lie wherever backward() makes them, on
  // this rank, and are packed as everywhere. Errors, after which nothing has
  // changed: as Coordinator::AllocateTensors.
  absl::Status MakeArena() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `followed`: AfterAccumulation() comes when it is over.
  void BeforeAccumulation(size_t index, bool followed);
  // `accumulated` went into the gradient.
  void AfterAccumulation(size_t index, const at::Tensor& accumulated);
  // Its gradient changes.
  void CountPass(Parameter& parameter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether its gradient may change without a hook: since InstallHooks() it
  // has got a type that has gradients.
  static bool Unwatched(const Parameter& parameter);
  // Whether the parameter waits for no further backward pass.
  bool Complete(const Parameter& parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether this rank has a gradient to contribute.
  bool Contributes(const Parameter& parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The parameter's in the arena; undefined: anywhere.
  at::Tensor PlaceOf(size_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why the gradient cannot go into an operation on dense ones; empty: it can.
  // Makes it dense where the options say so.
  std::string MakeDense(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Looks at what this rank contributes to the parameter's gradient: whether
  // it is finite, or is not looked at.
  bool PassesLook(const Parameter& parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If it does not: warns, but for most of many steps; returns why the gradient
  // is not to be reduced, empty if it is all the same.
  std::string FiniteProblem(const Parameter& parameter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What reduces the gradient, in an operation from which this rank is absent
  // or not.
  OperationTensors TensorsOf(size_t index, bool operation_absent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Loads the group's operation with the members that are not sparse. False:
  // there are none.
  absl::StatusOr<bool> Load(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same; keeps its error, as the next one does.
  bool TryLoad(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakePresence(Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of `groups` that are not in flight. Keeps its error.
  void Submit(absl::Span<const size_t> groups, Submission submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Submits `groups` where they are not in flight, waits for them and takes
  // their results. Returns those whose operation failed because some gradient
  // is sparse; of other errors that of the first group goes to `status`, which
  // is the same one on all ranks.
  std::vector<size_t> Reduce(const std::vector<size_t>& groups,
                             absl::Status& status);
  // Takes the results of what was in flight.
  void TakeResults(const Group& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `status` of the group's operation, with the names of its tensors.
  absl::Status Explain(const absl::Status& status, const Group& group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All are collective and return their error.
  absl::Status AgreeOnSparseParameters();
  absl::Status ReduceSparseGradients();
  absl::Status CheckReplicas();

  // Gradients are awaited anew; they are results, or no more used.
  void BeginRound(bool reduced) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The number of the present step.
  uint32_t& step() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GradientReducerOptions options_;
  const bool looks_at_gradients_;
  ReplicaCheck replicas_;
  mutable base::Mutex mutex_;
  std::vector<Parameter> parameters_ ABSL_GUARDED_BY(mutex_);
  std::vector<Group> groups_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GradientArena> arena_ ABSL_GUARDED_BY(mutex_);
  // Indices of the groups in flight, in the order of submission.
  std::vector<size_t> in_flight_ ABSL_GUARDED_BY(mutex_);
  // First error of a hook.
  absl::Status kept_error_ ABSL_GUARDED_BY(mutex_);
  bool synchronized_ ABSL_GUARDED_BY(mutex_) = false;
  // Since the join with which it began.
  uint32_t step_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t joins_ ABSL_GUARDED_BY(mutex_) = 0;
  // As the first backward pass of a round found the parameters.
  ParameterSample sample_ ABSL_GUARDED_BY(mutex_);
  bool warned_of_early_change_ ABSL_GUARDED_BY(mutex_) = false;
  // See not_finite().
  std::string not_finite_ ABSL_GUARDED_BY(mutex_);
  // Steps in which this rank had a gradient that is not finite, and the last.
  uint64_t steps_not_finite_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t last_not_finite_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvdlite::internal
