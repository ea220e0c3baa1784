#include <hvdlite/work.h>

#include <utility>

#include "absl/time/time.h"
#include "torch_plugin/pending_operation.h"
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

}  // namespace hvdlite
