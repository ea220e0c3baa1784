#include "negotiation/operation_table.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "negotiation/operation_memory.h"
#include "negotiation/rank_list.h"

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

OperationTable::OperationTable(int rank, int world_size,
                               const base::Clock& clock)
    : rank_(rank), clock_(clock) {
  std::vector<int> world(world_size);
  std::iota(world.begin(), world.end(), 0);
  AddProcessSet(0, std::move(world));
}

void OperationTable::AddProcessSet(ProcessSetId id, std::vector<int> members) {
  base::MutexLock lock(&mutex_);
  members_[id] = std::move(members);
}

void OperationTable::RemoveProcessSet(ProcessSetId id) {
  base::MutexLock lock(&mutex_);
  members_.erase(id);
}

absl::Status OperationTable::CheckMembership(const Operation& operation) const {
  const Request& request = operation.request;
  const auto set = members_.find(request.process_set);
  if (set == members_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", request.name, "': this rank is not in process set ",
                     request.process_set, ", or the set has been removed"));
  }
  if (!request.refusal.empty()) return absl::OkStatus();
  const std::vector<int>& members = set->second;
  switch (request.collective) {
    case Collective::kBroadcast:
      if (absl::c_binary_search(members, request.root_rank)) break;
      return absl::InvalidArgumentError(absl::StrCat(
          "broadcast of '", request.name, "': root rank ", request.root_rank,
          " is not one of the ranks that take part (", FormatRanks(members),
          ")"));
    case Collective::kAlltoall:
      if (operation.rows.size() == members.size()) break;
      return absl::InvalidArgumentError(absl::StrCat(
          "alltoall of '", request.name, "' has splits for ",
          operation.rows.size(), " ranks, but ", members.size(), " take part"));
    case Collective::kReducescatter: {
      const auto place = absl::c_lower_bound(members, rank_) - members.begin();
      return CheckShare(operation, static_cast<int>(members.size()),
                        static_cast<int>(place));
    }
    case Collective::kAddProcessSet: {
      const std::vector<int>& world = members_.at(0);
      if (request.members.front() >= 0 &&
          request.members.back() <= world.back()) {
        break;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("process set of ", FormatRanks(request.members),
                       ": the world has ", FormatRanks(world)));
    }
    case Collective::kAllreduce:
    case Collective::kAdasum:
    case Collective::kAllgather:
    case Collective::kBarrier:
    case Collective::kRemoveProcessSet:
    case Collective::kJoin:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Completion>> OperationTable::Submit(
    Operation operation) {
  if (absl::Status status = CheckMemory(operation); !status.ok()) {
    return status;
  }
  auto pending = std::make_shared<PendingOperation>();
  pending->operation = std::move(operation);
  const Request& request = pending->operation.request;
  pending->completion = std::make_shared<Completion>(request.name);
  {
    base::MutexLock lock(&mutex_);
    if (!world_status_.ok()) return ForOperation(world_status_, request);
    if (left_because_.has_value()) {
      return absl::UnavailableError(
          absl::StrCat("'", request.name,
                       "' was submitted after this rank had left the world: ",
                       *left_because_));
    }
    if (joined_) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", request.name,
                       "' was submitted on a rank that has called join(), "
                       "which has not returned yet"));
    }
    if (absl::Status status = CheckMembership(pending->operation);
        !status.ok()) {
      return status;
    }
    if (!pending_.try_emplace(request.name, pending).second) {
      return absl::AlreadyExistsError(absl::StrCat(
          "'", request.name, "': an operation of this name (",
          absl::AsciiStrToLower(
              NameOf(pending_[request.name]->operation.request.collective)),
          ") is still pending on this rank; wait for it first, or give this "
          "one another name"));
    }
    joined_ = request.collective == Collective::kJoin;
    if (recorder_ != nullptr) pending->lane = lanes_.Acquire();
    pending->submitted_ns = clock_.NowNanos();
    inputs_.submitted.push_back(pending);
  }
  return pending->completion;
}

void OperationTable::Complete(const PendingPtr& pending,
                              const absl::Status& status,
                              const Outcome& outcome) {
  {
    base::MutexLock lock(&mutex_);
    const Request& request = pending->operation.request;
    const auto found = pending_.find(request.name);
    if (found == pending_.end() || found->second != pending) return;
    pending_.erase(found);
    if (request.collective == Collective::kJoin) joined_ = false;
    if (pending->lane != 0) lanes_.Release(pending->lane);
  }
  if (pending->operation.done) pending->operation.done(status);
  pending->completion->Complete(status, outcome);
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
    Complete(pending, ForOperation(status, pending->operation.request));
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
  if (left_because_.has_value()) return false;
  left_because_ = reason;
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
