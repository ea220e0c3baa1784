#include "negotiation/operation_table.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {
namespace {

// "allreduce of 'x': message".
absl::Status ForOperation(const absl::Status& status, const Request& request) {
  return absl::Status(
      status.code(),
      absl::StrCat(absl::AsciiStrToLower(NameOf(request.collective)), " of '",
                   request.name, "': ", status.message()));
}

}  // namespace

absl::Status OperationTable::Check(const Operation& operation) const {
  const Request& request = operation.request;
  const auto bytes = static_cast<size_t>(request.size_bytes());
  if (request.name.empty()) {
    return absl::InvalidArgumentError("an operation needs a name");
  }
  if (operation.output.size() != bytes ||
      operation.input.size() != (operation.absent ? 0 : bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", request.name, "' has ", bytes, " bytes, but an input of ",
        operation.input.size(), " and an output of ", operation.output.size()));
  }
  if (request.collective == Collective::kBroadcast &&
      (request.root_rank < 0 || request.root_rank >= world_size_)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "broadcast of '", request.name, "': root rank ", request.root_rank,
        " does not exist; ranks are 0 to ", world_size_ - 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Completion>> OperationTable::Submit(
    Operation operation) {
  if (absl::Status status = Check(operation); !status.ok()) {
    return status;
  }
  auto pending = std::make_shared<PendingOperation>();
  pending->operation = std::move(operation);
  const Request& request = pending->operation.request;
  pending->completion = std::make_shared<Completion>(request.name);
  {
    base::MutexLock lock(&mutex_);
    if (!world_status_.ok()) return ForOperation(world_status_, request);
    if (left_) {
      return absl::UnavailableError(absl::StrCat(
          "'", request.name, "' was submitted after this rank left the world"));
    }
    if (!pending_.try_emplace(request.name, pending).second) {
      return absl::AlreadyExistsError(absl::StrCat(
          "'", request.name, "': an operation of this name (",
          absl::AsciiStrToLower(
              NameOf(pending_[request.name]->operation.request.collective)),
          ") is still pending on this rank; wait for it first, or give this "
          "one another name"));
    }
    if (recorder_ != nullptr) pending->lane = lanes_.Acquire();
    pending->submitted_ns = clock_.NowNanos();
    inputs_.submitted.push_back(pending);
  }
  return pending->completion;
}

void OperationTable::Complete(const PendingPtr& pending,
                              const absl::Status& status,
                              bool absent_everywhere) {
  {
    base::MutexLock lock(&mutex_);
    const auto found = pending_.find(pending->operation.request.name);
    if (found == pending_.end() || found->second != pending) return;
    pending_.erase(found);
    if (pending->lane != 0) lanes_.Release(pending->lane);
  }
  if (pending->operation.done) pending->operation.done(status);
  pending->completion->Complete(status, absent_everywhere);
}

void OperationTable::Fail(const absl::Status& status, bool interrupted) {
  std::vector<PendingPtr> all;
  {
    base::MutexLock lock(&mutex_);
    if (world_status_.ok()) world_status_ = status;
    for (const auto& [name, pending] : pending_) all.push_back(pending);
    if (interrupted) interrupted_ = all;
    inputs_.submitted.clear();
  }
  for (const PendingPtr& pending : all) {
    Complete(pending, ForOperation(status, pending->operation.request), false);
  }
}

void OperationTable::MarkUrgent(const Completion& completion) {
  base::MutexLock lock(&mutex_);
  const auto found = pending_.find(completion.name());
  if (found == pending_.end()) return;
  PendingOperation& pending = *found->second;
  if (pending.completion.get() != &completion || pending.marked_urgent) return;
  pending.marked_urgent = true;
  inputs_.urgent.push_back(completion.name());
}

bool OperationTable::Leave(const std::string& reason) {
  base::MutexLock lock(&mutex_);
  if (std::exchange(left_, true)) return false;
  inputs_.leaving = reason;
  return true;
}

OperationTable::Inputs OperationTable::TakeInputs() {
  base::MutexLock lock(&mutex_);
  return std::exchange(inputs_, {});
}

absl::Status OperationTable::world_status() const {
  base::MutexLock lock(&mutex_);
  return world_status_;
}

std::shared_ptr<timeline::TraceRecorder> OperationTable::recorder() const {
  base::MutexLock lock(&mutex_);
  return recorder_;
}

void OperationTable::set_recorder(
    std::shared_ptr<timeline::TraceRecorder> recorder) {
  base::MutexLock lock(&mutex_);
  recorder_ = std::move(recorder);
}

}  // namespace hvdlite::negotiation
