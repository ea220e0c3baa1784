#include "negotiation/engine/operation_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "negotiation/engine/operation_memory.h"
#include "negotiation/protocol/rank_list.h"

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
                               int64_t min_batch_bytes,
                               const base::Clock& clock)
    : rank_(rank), min_batch_bytes_(min_batch_bytes), clock_(clock) {
  std::vector<int> world(world_size);
  std::iota(world.begin(), world.end(), 0);
  AddProcessSet(0, std::move(world));
}

void OperationTable::AddProcessSet(ProcessSetId id, std::vector<int> members) {
  base::MutexLock lock(&mutex_);
  members_[id] = std::move(members);
}

std::vector<PendingPtr> OperationTable::RemoveProcessSet(ProcessSetId id) {
  std::vector<PendingPtr> queued;
  base::MutexLock lock(&mutex_);
  members_.erase(id);
  if (queued_ == 0) return queued;
  for (const PendingPtr& first : pending_) {
    if (first->ahead_ != nullptr) continue;
    for (const PendingOperation* one = first->behind_; one != nullptr;
         one = one->behind_) {
      if (one->operation.request.process_set != id) continue;
      queued.push_back(pending_[one->index_]);
    }
  }
  return queued;
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

absl::Status OperationTable::CheckOpen(const Request& request) const {
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
  return absl::OkStatus();
}

// ---- In and out.

const std::shared_ptr<NameQueue>& OperationTable::QueueOf(
    const std::string& name) {
  std::shared_ptr<NameQueue>& queue = queues_[name];
  if (queue == nullptr) queue = std::make_shared<NameQueue>();
  return queue;
}

void OperationTable::PutIn(PendingPtr pending) {
  PendingOperation& added = *pending;
  added.pending_ = true;
  added.marked_urgent_ = false;
  added.index_ = pending_.size();
  added.ahead_ = std::exchange(added.queue_->last, &added);
  pending_.push_back(std::move(pending));
  if (added.ahead_ == nullptr) {
    HandOver(added);
  } else {
    added.ahead_->behind_ = &added;
    ++queued_;
  }
}

void OperationTable::HandOver(PendingOperation& pending) {
  if (pending.operation.request.collective == Collective::kJoin &&
      queued_ > 0) {
    held_join_ = &pending;
    for (const PendingPtr& before : pending_) MarkUrgent(*before);
    return;
  }
  pending.submitted_ns = clock_.NowNanos();
  gathered_bytes_ += GatheredBytes(pending.operation.request);
  if (recorder_ != nullptr) pending.lane = lanes_.Acquire();
  inputs_.submitted.push_back(pending_[pending.index_]);
  if (pending.marked_urgent_) {
    inputs_.urgent.push_back(pending_[pending.index_]);
  }
}

bool OperationTable::TakeOut(PendingOperation& pending) {
  if (!pending.pending_) return false;
  pending.pending_ = false;
  PendingOperation* const ahead = std::exchange(pending.ahead_, nullptr);
  PendingOperation* const behind = std::exchange(pending.behind_, nullptr);
  if (ahead != nullptr || behind != nullptr) --queued_;
  if (ahead != nullptr) ahead->behind_ = behind;
  if (behind != nullptr) {
    behind->ahead_ = ahead;
  } else {
    pending.queue_->last = ahead;
  }
  const Request& request = pending.operation.request;
  if (!pending.prepared_) {
    // Of the queue, the table and this one know.
    const auto queue = std::move(pending.queue_);
    if (queue->last == nullptr && queue.use_count() == 2) {
      queues_.erase(request.name);
    }
  }
  if (request.collective == Collective::kJoin) {
    joined_ = false;
    held_join_ = nullptr;
  }
  if (pending.lane != 0) lanes_.Release(std::exchange(pending.lane, 0));
  if (pending.index_ + 1 < pending_.size()) {
    pending_[pending.index_] = std::move(pending_.back());
    pending_[pending.index_]->index_ = pending.index_;
  }
  pending_.pop_back();
  return true;
}

// Nobody knows how many rows will arrive: let it start.
int64_t OperationTable::GatheredBytes(const Request& request) const {
  return request.rows_differ() ? min_batch_bytes_ : request.size_bytes();
}

bool OperationTable::WorthWaking(const PendingOperation& submitted) const {
  if (submitted.ahead_ != nullptr) return false;
  switch (submitted.operation.request.collective) {
    case Collective::kAddProcessSet:
    case Collective::kRemoveProcessSet:
    case Collective::kJoin:
      return true;
    default:
      return awaited_ || gathered_bytes_ >= min_batch_bytes_;
  }
}

absl::StatusOr<std::shared_ptr<const Completion>> OperationTable::Submit(
    Operation&& operation, bool* worth_waking) {
  if (absl::Status status = CheckMemory(operation); !status.ok()) {
    return status;
  }
  auto pending = std::make_shared<PendingOperation>(std::move(operation));
  const Request& request = pending->operation.request;
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckOpen(request); !status.ok()) return status;
  if (absl::Status status = CheckMembership(pending->operation); !status.ok()) {
    return status;
  }
  joined_ = request.collective == Collective::kJoin;
  pending->queue_ = QueueOf(request.name);
  PutIn(pending);
  *worth_waking = WorthWaking(*pending);
  return pending;
}

// ---- Completing.

void OperationTable::End(PendingOperation& pending, const absl::Status& status,
                         const Outcome& outcome) {
  Operation& operation = pending.operation;
  if (operation.done) operation.done(status);
  pending.Completion::Complete(status, outcome);
}

void OperationTable::Complete(absl::Span<const PendingPtr> operations,
                              const absl::Status& status,
                              const Outcome& outcome) {
  absl::InlinedVector<PendingOperation*, 4> taken;
  taken.reserve(operations.size());
  {
    base::MutexLock lock(&mutex_);
    absl::InlinedVector<PendingOperation*, 4> next;
    // Backwards, which moves little where they came in this order.
    for (size_t i = operations.size(); i-- > 0;) {
      PendingOperation& one = *operations[i];
      PendingOperation* const behind =
          one.ahead_ == nullptr ? one.behind_ : nullptr;
      if (!TakeOut(one)) continue;
      taken.push_back(&one);
      if (behind != nullptr) next.push_back(behind);
    }
    for (auto one = next.rbegin(); one != next.rend(); ++one) HandOver(**one);
    if (held_join_ != nullptr && queued_ == 0) {
      HandOver(*std::exchange(held_join_, nullptr));
    }
  }
  for (auto pending = taken.rbegin(); pending != taken.rend(); ++pending) {
    if ((*pending)->prepared_) {
      End(**pending, status, outcome);  // the application's from here on
      continue;
    }
    // Whoever keeps the Completion is not to keep what the operation owns.
    Operation& operation = (*pending)->operation;
    const auto keep_alive = std::move(operation.keep_alive);
    const auto allocate = std::move(operation.allocate);
    End(**pending, status, outcome);
    operation.done = nullptr;
  }
}

void OperationTable::Fail(const absl::Status& status, bool interrupted) {
  std::vector<PendingPtr> all;
  {
    base::MutexLock lock(&mutex_);
    if (world_status_.ok()) world_status_ = status;
    all = pending_;
    if (interrupted) interrupted_ = all;
    for (size_t i = all.size(); i-- > 0;) {
      all[i]->lost_ = true;
      TakeOut(*all[i]);
    }
    inputs_.submitted.clear();
    inputs_.urgent.clear();
  }
  for (const PendingPtr& pending : all) {
    End(*pending, ForOperation(status, pending->operation.request), {});
  }
}

void OperationTable::MarkUrgent(const Completion& completion) {
  const auto& pending = static_cast<const PendingOperation&>(completion);
  base::MutexLock lock(&mutex_);
  if (pending.pending_) MarkUrgent(*pending_[pending.index_]);
}

void OperationTable::MarkUrgent(PendingOperation& pending) {
  for (PendingOperation* one = &pending; one != nullptr && !one->marked_urgent_;
       one = one->ahead_) {
    one->marked_urgent_ = true;
    // Others are when they are handed over.
    if (one->ahead_ == nullptr) {
      inputs_.urgent.push_back(pending_[one->index_]);
    }
  }
}

bool OperationTable::Leave(const std::string& reason) {
  base::MutexLock lock(&mutex_);
  if (left_because_.has_value()) return false;
  left_because_ = reason;
  inputs_.leaving = reason;
  return true;
}

void OperationTable::TakeInputs(Inputs& inputs, bool awaited,
                                int64_t held_bytes) {
  inputs.submitted.clear();
  inputs.urgent.clear();
  inputs.leaving.reset();
  base::MutexLock lock(&mutex_);
  std::swap(inputs, inputs_);
  gathered_bytes_ = held_bytes;
  awaited_ = awaited;
}

bool OperationTable::MayGather() const {
  base::MutexLock lock(&mutex_);
  return !inputs_.submitted.empty() && inputs_.urgent.empty() &&
         !inputs_.leaving.has_value() && gathered_bytes_ < min_batch_bytes_;
}

bool OperationTable::IsWorthWaking() const {
  base::MutexLock lock(&mutex_);
  return !inputs_.submitted.empty() &&
         (awaited_ || gathered_bytes_ >= min_batch_bytes_ ||
          !inputs_.urgent.empty());
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
