// The OperationTable's part that is about prepared operations.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/engine/operation_memory.h"
#include "negotiation/engine/operation_table.h"

namespace hvdlite::negotiation {

absl::StatusOr<PreparedPtr> OperationTable::Prepare(Operation&& operation) {
  const Request& request = operation.request;
  switch (request.collective) {
    case Collective::kAllreduce:
    case Collective::kAdasum:
    case Collective::kBroadcast:
    case Collective::kBarrier:
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("'", request.name, "': an operation of kind ",
                       NameOf(request.collective), " cannot be prepared"));
  }
  if (absl::Status status = CheckMemory(operation); !status.ok()) {
    return status;
  }
  auto prepared =
      std::make_shared<PreparedOperation>(std::move(operation), this);
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckMembership(prepared->operation);
      !status.ok()) {
    return status;
  }
  if (queues_.size() >= queues_limit_) {
    absl::erase_if(queues_, [](const auto& entry) {
      return entry.second.use_count() == 1;
    });
    queues_limit_ = std::max<size_t>(64, 2 * queues_.size());
  }
  prepared->queue_ = QueueOf(prepared->name());
  std::weak_ptr<PreparedOperation>& known = prepared->queue_->prepared;
  if (!known.expired()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "'", prepared->name(),
        "' cannot be prepared: there is a prepared operation of this name on "
        "this rank already; submit that one, or give this one another name"));
  }
  // What the application destroys is this handle; a batch may hold on to the
  // operation for a moment.
  PreparedPtr handle(prepared.get(), [prepared](PreparedOperation*) mutable {
    prepared.reset();
  });
  known = handle;
  return handle;
}

absl::Status OperationTable::CheckSubmittable(
    const PreparedOperation& operation) const {
  const absl::string_view name = operation.name();
  if (operation.table_ != this) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' was prepared by another coordinator"));
  }
  // Not done: this thread's, or its completion is under way.
  if (operation.pending_ || !operation.done()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", name,
        "': this prepared operation is still pending on this rank; wait for it "
        "before it is submitted again"));
  }
  if (!operation.bound()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", name, "': the prepared operation has no memory; call Bind"));
  }
  return absl::OkStatus();
}

absl::Status OperationTable::SubmitPrepared(
    absl::Span<const PreparedPtr> operations, bool* worth_waking) {
  *worth_waking = false;
  if (operations.empty()) return absl::OkStatus();
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckOpen(operations.front()->operation.request);
      !status.ok()) {
    return status;
  }
  // They usually are of one process set.
  std::optional<ProcessSetId> checked_set;
  for (size_t i = 0; i < operations.size(); ++i) {
    PreparedOperation& prepared = *operations[i];
    absl::Status status = CheckSubmittable(prepared);
    const ProcessSetId set = prepared.operation.request.process_set;
    if (status.ok() && set != checked_set) {
      status = CheckMembership(prepared.operation);
      checked_set = set;
    }
    if (!status.ok()) {
      for (size_t j = 0; j < i; ++j) operations[j]->Disarm();
      return status;
    }
    prepared.Rearm();
  }
  for (const PreparedPtr& prepared : operations) {
    PutIn(prepared->shared_from_this());
  }
  *worth_waking =
      WorthWaking(*operations.front()) || WorthWaking(*operations.back());
  return absl::OkStatus();
}

}  // namespace hvdlite::negotiation
