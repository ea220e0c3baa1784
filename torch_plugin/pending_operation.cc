#include "torch_plugin/pending_operation.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "base/status_macros.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {

PendingOperation::PendingOperation(
    std::shared_ptr<World> world,
    std::shared_ptr<const negotiation::Completion> completion,
    OperationTensors tensors)
    : world_(std::move(world)),
      completion_(std::move(completion)),
      tensors_(std::move(tensors)) {}

absl::StatusOr<std::shared_ptr<PendingOperation>> PendingOperation::TrySubmit(
    std::shared_ptr<World> world, negotiation::Request request,
    OperationTensors tensors, Submission submission) {
  negotiation::Operation operation;
  operation.caller_waits = submission == Submission::kSynchronous;
  operation.absent = !tensors.input.defined() && tensors.output.defined();
  if (tensors.input.defined()) operation.input = BytesOf(tensors.input);
  if (tensors.output.defined()) operation.output = BytesOf(tensors.output);
  operation.request = std::move(request);
  operation.keep_alive = std::make_shared<OperationTensors>(tensors);
  HVDLITE_ASSIGN_OR_RETURN(
      std::shared_ptr<const negotiation::Completion> completion,
      world->Submit(std::move(operation)));
  return std::make_shared<PendingOperation>(
      std::move(world), std::move(completion), std::move(tensors));
}

std::shared_ptr<PendingOperation> PendingOperation::Submit(
    std::shared_ptr<World> world, negotiation::Request request,
    OperationTensors tensors, Submission submission) {
  return ValueOrThrow(TrySubmit(std::move(world), std::move(request),
                                std::move(tensors), submission));
}

absl::Status PendingOperation::Wait() {
  absl::Status status = world_->Wait(*completion_);
  if (status.ok()) Deliver();
  return status;
}

bool PendingOperation::WaitFor(absl::Duration timeout) {
  if (!world_->WaitFor(*completion_, timeout)) return false;
  if (completion_->status().ok()) Deliver();
  return true;
}

bool PendingOperation::IsCompleted() {
  if (!completion_->done()) {
    // Once is enough: asking again would only disturb who coordinates.
    if (!asked_.exchange(true)) {
      world_->WaitFor(*completion_, absl::ZeroDuration());
    }
    return false;
  }
  if (completion_->status().ok()) Deliver();
  return true;
}

void PendingOperation::Deliver() {
  if (tensors_.result.is_same(tensors_.output)) return;
  std::call_once(delivered_, [this] {
    const at::NoGradGuard no_grad;
    tensors_.result.copy_(tensors_.output);
  });
}

}  // namespace hvdlite::internal
