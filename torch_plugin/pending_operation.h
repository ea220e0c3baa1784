// PendingOperation: an operation that was submitted, and its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "negotiation/completion.h"
#include "negotiation/request.h"
#include "torch_plugin/world_state.h"

namespace hvdlite::internal {

// Tensors of one operation; those that are given as bytes are non-overlapping
// and dense.
struct OperationTensors {
  // What this rank contributes; undefined: nothing.
  at::Tensor input;
  // Gets the result; may be `input`. Undefined for a barrier.
  at::Tensor output;
  // What the user gets. Where it is not `output` itself, `output` is copied
  // into it, in the thread that asks first once the operation is done (so that
  // copying uses that thread's OpenMP team, and not the coordinator).
  at::Tensor result;
};

// Whether the submitting thread goes on, or waits for the operation at once.
enum class Submission { kAsynchronous, kSynchronous };

// Thread-safe. Shared by all copies of a Work.
class PendingOperation {
 public:
  // Throws c10::Error if the operation cannot be submitted.
  static std::shared_ptr<PendingOperation> Submit(std::shared_ptr<World> world,
                                                  negotiation::Request request,
                                                  OperationTensors tensors,
                                                  Submission submission);

  // As above, but returns the error.
  static absl::StatusOr<std::shared_ptr<PendingOperation>> TrySubmit(
      std::shared_ptr<World> world, negotiation::Request request,
      OperationTensors tensors, Submission submission);

  PendingOperation(std::shared_ptr<World> world,
                   std::shared_ptr<const negotiation::Completion> completion,
                   OperationTensors tensors);

  // Blocks until it is done and returns its status.
  absl::Status Wait();
  // Whether it is done within `timeout`.
  bool WaitFor(absl::Duration timeout);
  bool IsCompleted();

  // Once it is done with success:
  const at::Tensor& result() const { return tensors_.result; }
  bool absent_everywhere() const { return completion_->absent_everywhere(); }

 private:
  void Deliver();

  const std::shared_ptr<World> world_;
  const std::shared_ptr<const negotiation::Completion> completion_;
  const OperationTensors tensors_;
  std::once_flag delivered_;
  std::atomic<bool> asked_{false};
};

}  // namespace hvdlite::internal
