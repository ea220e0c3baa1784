// GradientReducer: reduces the gradients of a set of parameters while
// backward() computes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "negotiation/request.h"
#include "torch_plugin/gradient_hooks.h"
#include "torch_plugin/pending_operation.h"

namespace hvdlite::internal {

struct GradientReducerOptions {
  // Of the operations' names: "<prefix>.allreduce.<parameter>".
  std::string name_prefix;
  // op, average and scales; the rest is filled in per gradient.
  negotiation::Request request;
  // The reduction averages: reducing the same gradients again changes nothing.
  bool averages = true;
  // Backward passes that add to a gradient before it is reduced.
  int64_t passes_per_step = 1;
};

// Each parameter goes Idle -> Accumulating -> InFlight -> Reduced. Hooks may
// run in any thread, everything else in one at a time. Hooks do not throw but
// for an accumulation into a gradient that is in flight; their other errors are
// kept for Synchronize().
class GradientReducer : public std::enable_shared_from_this<GradientReducer> {
 public:
  using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  // Installs the hooks, which are removed when the reducer is destroyed.
  static std::shared_ptr<GradientReducer> Create(
      const NamedParameters& parameters, GradientReducerOptions options);

  GradientReducer(const NamedParameters& parameters,
                  GradientReducerOptions options);

  // Submits what has not been submitted (gradients that are not defined count
  // as absent) and waits for everything. Afterwards every gradient is reduced,
  // or, after an error, nothing is in flight and every parameter is idle.
  absl::Status Synchronize();

  // Whether Synchronize() succeeded and no gradient has changed since.
  bool synchronized() const;

  // Everything is idle again; to be called when the gradients have been used.
  void FinishStep();

  // If something is in flight: Synchronize(), whatever comes of it. Then
  // FinishStep().
  void Abandon();

 private:
  enum class State { kIdle, kAccumulating, kInFlight, kReduced };

  struct Parameter {
    std::string name;
    at::Tensor tensor;
    State state = State::kIdle;
    int64_t passes = 0;
    std::shared_ptr<PendingOperation> operation;
    // The operation was submitted without a gradient; its result becomes the
    // gradient if any rank had one.
    bool absent = false;
    std::unique_ptr<GradientHooks> hooks;
  };

  void InstallHooks();
  void BeforeAccumulation(size_t index);
  void AfterAccumulation(size_t index);
  void Submit(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes over what was in flight, in the order of submission.
  std::vector<size_t> SubmitAll();
  void SetAll(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GradientReducerOptions options_;
  mutable base::Mutex mutex_;
  std::vector<Parameter> parameters_ ABSL_GUARDED_BY(mutex_);
  // Indices of the parameters in flight.
  std::vector<size_t> in_flight_ ABSL_GUARDED_BY(mutex_);
  // First error of a hook.
  absl::Status kept_error_ ABSL_GUARDED_BY(mutex_);
  bool synchronized_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hvdlite::internal
