// The OperationTable's part that is about prepared operations.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/operation_memory.h"
#include "negotiation/operation_table.h"

namespace hvdlite::negotiation {

bool OperationTable::IsPrepared(const std::string& name,
                                PreparedPtr& released) {
  if (prepared_.empty()) return false;
  const auto found = prepared_.find(name);
  if (found == prepared_.end()) return false;
  released = found->second.lock();
  if (released != nullptr && (!released->destroyed_ || released->pending_)) {
    return true;
  }
  prepared_.erase(found);
  return false;
}

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
  const std::string& name = prepared->name();
  PreparedPtr released;  // after the lock
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckMembership(prepared->operation);
      !status.ok()) {
    return status;
  }
  if (IsPrepared(name, released) || by_name_.contains(name)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "'", name, "' cannot be prepared: an operation of this name is ",
        by_name_.contains(name) ? "pending" : "prepared",
        " on this rank already; give this one another name"));
  }
  if (prepared_.size() >= prepared_limit_) {
    absl::erase_if(prepared_,
                   [](const auto& entry) { return entry.second.expired(); });
    prepared_limit_ = std::max<size_t>(64, 2 * prepared_.size());
  }
  prepared_[name] = prepared;
  // What the application destroys is this handle.
  return PreparedPtr(prepared.get(), [prepared](PreparedOperation*) {
    prepared->destroyed_ = true;
  });
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
    return absl::AlreadyExistsError(absl::StrCat(
        "'", name,
        "': the prepared operation is still pending on this rank; wait for it "
        "first"));
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
      TakeBack(i);
      for (size_t j = 0; j < i; ++j) operations[j]->Disarm();
      return status;
    }
    prepared.Rearm();
    PutIn(prepared.shared_from_this());
  }
  *worth_waking = WorthWaking(operations.front()->operation.request);
  return absl::OkStatus();
}

}  // namespace hvdlite::negotiation
