#include "negotiation/engine/operation_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "negotiation/engine/released_names.h"

namespace hvdlite::negotiation {
namespace {

// Returns "allreduce of 'x': message"; without memory, `status`.
absl::Status ForOperation(const absl::Status& status, const Request& request) {
  absl::Status result = status;
  base::ContainExceptions([&] {
    result = absl::Status(
        status.code(),
        absl::StrCat(absl::AsciiStrToLower(NameOf(request.collective)), " of '",
                     request.name, "': ", status.message()));
  });
  return result;
}

// Reserves room for `more` elements; grows like push_back.
template <typename T>
void MakeRoomIn(std::vector<T>& elements, size_t more) {
  const size_t size = elements.size() + more;
  if (size > elements.capacity()) {
    elements.reserve(std::max(size, 2 * elements.capacity()));
  }
}

}  // namespace

OperationTable::OperationTable(int rank, int world_size,
                               int64_t min_batch_bytes,
                               const base::Clock& clock)
    : rank_(rank),
      min_batch_bytes_(min_batch_bytes),
      clock_(clock),
      released_(std::make_shared<ReleasedNames>()) {
  std::vector<int> world(world_size);
  std::iota(world.begin(), world.end(), 0);
  AddProcessSet(0, std::move(world));
}

void OperationTable::AddProcessSet(ProcessSetId id, std::vector<int> members) {
  base::MutexLock lock(&mutex_);
  members_[id] = std::move(members);
}

std::vector<SubmittedPtr> OperationTable::RemoveProcessSet(ProcessSetId id) {
  std::vector<SubmittedPtr> queued;
  base::MutexLock lock(&mutex_);
  members_.erase(id);
  if (queued_ == 0) return queued;
  for (const SubmittedPtr& first : pending_) {
    if (first->ahead_ != nullptr) continue;
    for (const SubmittedOperation* one = first->behind_; one != nullptr;
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
  return CheckMember(operation, set->second, members_.at(0), rank_);
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

// ---- Adding and removing operations.

const std::shared_ptr<NameQueue>& OperationTable::QueueOf(
    const std::string& name) {
  auto known = queues_.find(name);
  if (known == queues_.end()) {
    known = queues_.emplace(name, std::make_shared<NameQueue>()).first;
  }
  return known->second;
}

// Each operation is handed over once, and marked as urgent once.
void OperationTable::MakeRoom(Inputs& inputs, size_t more) {
  MakeRoomIn(pending_, more);
  MakeRoomIn(inputs.submitted, pending_.size() + more);
  MakeRoomIn(inputs.urgent, pending_.size() + more);
}

void OperationTable::PutIn(SubmittedPtr pending) {
  SubmittedOperation& added = *pending;
  added.pending_ = true;
  added.urgent_ = false;
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

void OperationTable::HandOver(SubmittedOperation& pending) {
  if (pending.operation.request.collective == Collective::kJoin &&
      queued_ > 0) {
    held_join_ = &pending;
    for (const SubmittedPtr& before : pending_) MarkUrgent(*before);
    return;
  }
  pending.submitted_ns = clock_.NowNanos();
  gathered_bytes_ += GatheredBytes(pending.operation.request);
  if (recorder_ != nullptr) {
    pending.track = tracks_.Acquire();
    in_flight_bytes_ += pending.operation.request.size_bytes();
  }
  inputs_.submitted.push_back(pending_[pending.index_]);
  if (pending.urgent_) {
    inputs_.urgent.push_back(pending_[pending.index_]);
  }
}

bool OperationTable::TakeOut(SubmittedOperation& pending) {
  if (!pending.pending_) return false;
  Unlink(pending);
  if (pending.index_ + 1 < pending_.size()) {
    pending_[pending.index_] = std::move(pending_.back());
    pending_[pending.index_]->index_ = pending.index_;
  }
  pending_.pop_back();
  return true;
}

void OperationTable::Unlink(SubmittedOperation& pending) {
  pending.pending_ = false;
  SubmittedOperation* const ahead = std::exchange(pending.ahead_, nullptr);
  SubmittedOperation* const behind = std::exchange(pending.behind_, nullptr);
  if (ahead != nullptr || behind != nullptr) --queued_;
  if (ahead != nullptr) ahead->behind_ = behind;
  if (behind != nullptr) {
    behind->ahead_ = ahead;
  } else {
    pending.queue_->last = ahead;
  }
  const Request& request = pending.operation.request;
  if (!pending.persistent_) {
    // The queue is known only to the table and this operation.
    const auto queue = std::move(pending.queue_);
    if (queue->last == nullptr && queue.use_count() == 2) {
      queues_.erase(request.name);
    }
  }
  if (request.collective == Collective::kJoin) {
    joined_ = false;
    held_join_ = nullptr;
  }
  if (pending.track != 0) {
    // Without memory to record that, the track is not used again.
    base::ContainExceptions(
        [&, track = std::exchange(pending.track, 0)]()
            ABSL_NO_THREAD_SAFETY_ANALYSIS { tracks_.Release(track); });
    in_flight_bytes_ -= request.size_bytes();
  }
}

// The number of rows that will arrive is unknown, so the operation starts.
int64_t OperationTable::GatheredBytes(const Request& request) const {
  return request.rows_differ() ? min_batch_bytes_ : request.size_bytes();
}

bool OperationTable::WantsWaking(const SubmittedOperation& submitted) {
  if (submitted.ahead_ != nullptr) return false;
  const bool wanted = !submitted.operation.request.traits().in_buckets ||
                      awaited_ || gathered_bytes_ >= min_batch_bytes_;
  if (wanted && inputs_.wanted_ns == 0) {
    inputs_.wanted_ns = submitted.submitted_ns;
  }
  return wanted;
}

absl::StatusOr<std::shared_ptr<const Completion>> OperationTable::Submit(
    Operation&& operation, bool* worth_waking) {
  if (absl::Status status = CheckMemory(operation); !status.ok()) {
    return status;
  }
  auto pending = std::make_shared<SubmittedOperation>(std::move(operation));
  const Request& request = pending->operation.request;
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckOpen(request); !status.ok()) return status;
  if (absl::Status status = CheckMembership(pending->operation); !status.ok()) {
    return status;
  }
  MakeRoom(inputs_, 1);
  pending->queue_ = QueueOf(request.name);
  joined_ = request.collective == Collective::kJoin;
  PutIn(pending);
  *worth_waking = WantsWaking(*pending);
  return pending;
}

// ---- Persistent operations.

absl::StatusOr<PersistentPtr> OperationTable::MakePersistent(
    Operation&& operation, Owner owner) {
  const Request& request = operation.request;
  const CollectiveTraits& traits = request.traits();
  // Its memory must not differ from one submission to the next.
  if (!traits.in_buckets || (traits.memory != MemoryRule::kWhole &&
                             traits.memory != MemoryRule::kNone)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", request.name, "': an operation of kind ",
                     NameOf(request.collective), " cannot be made persistent"));
  }
  if (absl::Status status = CheckMemory(operation); !status.ok()) {
    return status;
  }
  auto persistent =
      std::make_shared<PersistentOperation>(std::move(operation), this);
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckMembership(persistent->operation);
      !status.ok()) {
    return status;
  }
  if (queues_.size() >= queues_limit_) {
    std::erase_if(queues_, [](const auto& entry) {
      return entry.second.use_count() == 1;
    });
    queues_limit_ = std::max<size_t>(64, 2 * queues_.size());
  }
  persistent->queue_ = QueueOf(persistent->name());
  std::weak_ptr<PersistentOperation>& known = persistent->queue_->persistent;
  if (owner == Owner::kOne && !known.expired()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "'", persistent->name(),
        "' cannot be made persistent: there is a persistent operation of this "
        "name on this rank already; submit that one, or give this one another "
        "name"));
  }
  // The application destroys only this handle; a bucket may keep the operation
  // a little longer. Names without one owner are forgotten after a while
  // without use.
  std::weak_ptr<ReleasedNames> released;
  if (owner == Owner::kOne) released = released_;
  PersistentPtr handle(persistent.get(),
                       [persistent, released = std::move(released)](
                           PersistentOperation*) mutable {
                         // If the table is gone, nothing has to be recorded.
                         if (const auto names = released.lock())
                           names->Add(persistent->name());
                         persistent.reset();
                       });
  if (owner == Owner::kOne) known = handle;
  return handle;
}

absl::Status OperationTable::CheckSubmittable(
    const PersistentOperation& operation) const {
  const absl::string_view name = operation.name();
  if (operation.table_ != this) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' belongs to another coordinator"));
  }
  // Not done: it is pending, or its completion is in progress.
  if (operation.pending_ || !operation.done()) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", name,
                     "': this persistent operation is still pending on this "
                     "rank; wait for it before it is submitted again"));
  }
  if (!operation.loaded()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", name, "': the persistent operation has no memory; call Load"));
  }
  return absl::OkStatus();
}

absl::Status OperationTable::SubmitPersistent(
    absl::Span<const PersistentPtr> operations, bool* worth_waking) {
  *worth_waking = false;
  if (operations.empty()) return absl::OkStatus();
  base::MutexLock lock(&mutex_);
  if (absl::Status status = CheckOpen(operations.front()->operation.request);
      !status.ok()) {
    return status;
  }
  MakeRoom(inputs_, operations.size());
  // They usually belong to one process set.
  std::optional<ProcessSetId> checked_set;
  for (size_t i = 0; i < operations.size(); ++i) {
    PersistentOperation& persistent = *operations[i];
    absl::Status status = absl::ResourceExhaustedError("");
    // Without memory for an error's text, none is submitted either.
    base::ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      status = CheckSubmittable(persistent);
      const ProcessSetId set = persistent.operation.request.process_set;
      if (status.ok() && set != checked_set) {
        status = CheckMembership(persistent.operation);
        checked_set = set;
      }
    });
    if (!status.ok()) {
      for (size_t j = 0; j < i; ++j) operations[j]->Disarm();
      return status;
    }
    persistent.Rearm();
  }
  for (const PersistentPtr& persistent : operations) {
    PutIn(persistent->shared_from_this());
  }
  *worth_waking =
      WantsWaking(*operations.front()) || WantsWaking(*operations.back());
  return absl::OkStatus();
}

// ---- Completing.

void OperationTable::End(SubmittedOperation& pending,
                         const absl::Status& status, const Outcome& outcome) {
  Operation& operation = pending.operation;
  // Waiting threads are released whatever `done` does.
  if (operation.done) {
    base::ContainExceptions([&] { operation.done(status); });
  }
  pending.Completion::Complete(status, outcome);
}

void OperationTable::Complete(absl::Span<const SubmittedPtr> operations,
                              const absl::Status& status,
                              const Outcome& outcome) {
  // The operations that end, and the next one of each name to be negotiated.
  struct Taken {
    SubmittedOperation* ends;
    SubmittedOperation* next;
  };
  absl::InlinedVector<Taken, 4> taken;
  taken.reserve(operations.size());
  {
    base::MutexLock lock(&mutex_);
    // Going backwards moves little if they came in this order.
    for (size_t i = operations.size(); i-- > 0;) {
      SubmittedOperation& one = *operations[i];
      SubmittedOperation* const behind =
          one.ahead_ == nullptr ? one.behind_ : nullptr;
      if (TakeOut(one)) taken.push_back({&one, behind});
    }
    for (auto one = taken.rbegin(); one != taken.rend(); ++one) {
      if (one->next != nullptr && one->next->pending_) HandOver(*one->next);
    }
    if (held_join_ != nullptr && queued_ == 0) {
      HandOver(*std::exchange(held_join_, nullptr));
    }
  }
  for (auto one = taken.rbegin(); one != taken.rend(); ++one) {
    SubmittedOperation& pending = *one->ends;
    if (pending.persistent_) {
      End(pending, status, outcome);  // belongs to the application now
      continue;
    }
    // A Completion that is kept must not keep what the operation owns.
    Operation& operation = pending.operation;
    const auto keep_alive = std::move(operation.keep_alive);
    const auto allocate = std::move(operation.allocate);
    End(pending, status, outcome);
    operation.done = nullptr;
  }
}

void OperationTable::Fail(const absl::Status& status, bool interrupted) {
  std::vector<SubmittedPtr> all;
  released_->Close();
  {
    base::MutexLock lock(&mutex_);
    if (world_status_.ok()) world_status_ = status;
    all.swap(pending_);
    for (const SubmittedPtr& pending : all) {
      pending->lost_ = true;
      Unlink(*pending);
    }
    inputs_.submitted.clear();
    inputs_.urgent.clear();
  }
  for (const SubmittedPtr& pending : all) {
    End(*pending, ForOperation(status, pending->operation.request), {});
  }
  base::MutexLock lock(&mutex_);
  if (interrupted && interrupted_.empty()) interrupted_ = std::move(all);
}

void OperationTable::MarkUrgent(const Completion& completion) {
  const auto& pending = static_cast<const SubmittedOperation&>(completion);
  base::MutexLock lock(&mutex_);
  if (pending.pending_) MarkUrgent(*pending_[pending.index_]);
}

void OperationTable::MarkUrgent(SubmittedOperation& pending) {
  for (SubmittedOperation* one = &pending; one != nullptr && !one->urgent_;
       one = one->ahead_) {
    one->urgent_ = true;
    // The others are marked when they are handed over.
    if (one->ahead_ == nullptr) {
      inputs_.urgent.push_back(pending_[one->index_]);  // there is room
    }
  }
}

bool OperationTable::Leave(const std::string& reason) {
  // Both copies are made first: without memory, neither is set.
  std::optional<std::string> known(reason);
  std::optional<std::string> told(reason);
  base::MutexLock lock(&mutex_);
  if (left_because_.has_value()) return false;
  left_because_ = std::move(known);
  inputs_.leaving = std::move(told);
  return true;
}

std::optional<std::string> OperationTable::left_because() const {
  base::MutexLock lock(&mutex_);
  return left_because_;
}

void OperationTable::TakeInputs(Inputs& inputs, bool awaited,
                                int64_t coalesced_bytes) {
  inputs.submitted.clear();
  inputs.urgent.clear();
  inputs.leaving.reset();
  inputs.released.clear();
  inputs.wanted_ns = 0;
  std::vector<std::string> released = released_->Take();
  base::MutexLock lock(&mutex_);
  MakeRoom(inputs, 0);
  std::swap(inputs, inputs_);
  inputs.released = std::move(released);
  std::erase_if(inputs.released, [&](const std::string& name) {
    mutex_.AssertHeld();
    const auto queue = queues_.find(name);
    return queue != queues_.end() && !queue->second->persistent.expired();
  });
  gathered_bytes_ = coalesced_bytes;
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

void OperationTable::RecordInFlight() const {
  base::MutexLock lock(&mutex_);
  if (recorder_ == nullptr) return;
  recorder_->Record(
      {.name = "IN_FLIGHT",
       .start_ns = clock_.NowNanos(),
       .args = {{"operations", static_cast<int64_t>(pending_.size())},
                {"bytes", in_flight_bytes_}},
       .kind = timeline::TraceEvent::Kind::kCounter});
}

void OperationTable::set_recorder(
    std::shared_ptr<timeline::TraceRecorder> recorder) {
  base::MutexLock lock(&mutex_);
  recorder_ = std::move(recorder);
}

}  // namespace hvdlite::negotiation
