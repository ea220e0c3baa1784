#include <hvdlite/work.h>

#include <utility>

#include "absl/time/time.h"
#include "torch_plugin/ops/pending_operation.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {

Work::Work(std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

at::Tensor Work::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return operation_->result();
}

bool Work::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool Work::is_completed() const { return operation_->IsCompleted(); }

GroupWork::GroupWork(std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

std::vector<at::Tensor> GroupWork::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return operation_->results();
}

bool GroupWork::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool GroupWork::is_completed() const { return operation_->IsCompleted(); }

AlltoallWork::AlltoallWork(
    std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

std::tuple<at::Tensor, at::Tensor> AlltoallWork::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return {operation_->result(), operation_->received_splits()};
}

bool AlltoallWork::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool AlltoallWork::is_completed() const { return operation_->IsCompleted(); }

}  // namespace hvdlite
