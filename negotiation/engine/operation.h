// Operation: what an application submits, and what becomes of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

using Inputs = absl::InlinedVector<absl::Span<const std::byte>, 1>;
using Outputs = absl::InlinedVector<absl::Span<std::byte>, 1>;

// How many rows arrive: [tensor][member of the process set, in rank order].
using RowsByMember = std::vector<std::vector<int64_t>>;

// One operation on its tensors, which are contiguous bytes, as the MemoryRule
// of its kind says.
struct Operation {
  Request request;
  // This rank has no gradient for it: it contributes the op's neutral element,
  // and gets the result if any rank has one. If none has, the operation ends
  // without a reduction and Completion::absent_everywhere() is true. `inputs`
  // is empty then. Where CollectiveTraits::may_be_absent.
  bool absent = false;
  // The training step that it belongs to; 0: none. The operation fails on every
  // rank unless all ranks are in the same one.
  uint32_t step = 0;
  Inputs inputs;    // one per tensor
  Outputs outputs;  // one per tensor; empty where `allocate` makes them
  // Of an allgather (MemoryRule::kRows): how many rows each tensor has. Of an
  // alltoall (kSplitRows): how many rows of its tensor go to each member of the
  // process set.
  std::vector<int64_t> rows;
  // Of these: called once, as soon as it is known how many rows arrive, on the
  // thread that coordinates; returns the outputs, one per tensor, which take
  // the rows of all members one after the other. Must not block or throw. An
  // error of it breaks the world, since the other ranks cannot be stopped any
  // more.
  std::function<absl::StatusOr<Outputs>(const RowsByMember& rows)> allocate;
  // Owner of that memory; released after completion. If the operation was
  // interrupted inside the data plane it is never released: peers or MPI may
  // still write there.
  std::shared_ptr<void> keep_alive;
  // Runs exactly once if Submit returned OK, on the thread that coordinates,
  // under no lock, before waiters are released; must not block or throw, may
  // Submit.
  std::function<void(const absl::Status&)> done;
  // The submitting thread is about to Wait() for it, and so will coordinate
  // itself: the background thread is not woken.
  bool caller_waits = false;

  // Of the tensors that this rank hands in.
  int64_t bytes() const;
};

// What an operation tells besides its outputs and status.
struct Outcome {
  // The operation was submitted as absent by every rank; nothing was reduced.
  bool absent_everywhere = false;
  // The new process set's id; of a join, the last rank to join.
  int64_t value = 0;
  // Not 0: the operation failed since the ranks were in different training
  // steps (Operation::step); all of them go on with this one.
  uint32_t next_step = 0;
};

// Of an operation that was submitted; see Coordinator. Thread-safe.
class Completion {
 public:
  virtual ~Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  virtual const std::string& name() const = 0;
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Only once done(), and of a persistent operation not once it is submitted
  // again:
  const absl::Status& status() const { return status_; }
  bool absent_everywhere() const { return outcome_.absent_everywhere; }
  int64_t value() const { return outcome_.value; }
  uint32_t next_step() const { return outcome_.next_step; }

 protected:
  explicit Completion(bool done) : done_(done) {}

  void Complete(absl::Status status, const Outcome& outcome) {
    status_ = std::move(status);
    outcome_ = outcome;
    done_.store(true, std::memory_order_release);
  }
  // To be completed anew, or not after all.
  void Rearm() { done_.store(false, std::memory_order_relaxed); }
  void Disarm() { done_.store(true, std::memory_order_release); }

 private:
  absl::Status status_;
  Outcome outcome_;
  std::atomic<bool> done_;
};

class OperationTable;
class PersistentOperation;
class SubmittedOperation;

// The operations of one name that are pending on this rank, in the order of
// their submission. The first is negotiated; each of the others waits for the
// one ahead of it to end.
struct NameQueue {
  SubmittedOperation* last = nullptr;
  // The one of one owner that is persistent under this name, if any.
  std::weak_ptr<PersistentOperation> persistent;
};

// An operation from its submission to its completion. Its Completion is a part
// of it, and the only one that the application sees.
class SubmittedOperation : public Completion {
 public:
  SubmittedOperation() : Completion(/*done=*/false), persistent_(false) {}
  explicit SubmittedOperation(Operation submitted, bool persistent = false)
      : Completion(/*done=*/persistent),
        operation(std::move(submitted)),
        persistent_(persistent) {}

  const std::string& name() const final { return operation.request.name; }

  // While it is pending, for whoever holds the progress lock; else for the
  // application.
  Operation operation;
  SlotHint hint;  // for whoever holds the progress lock

  int64_t submitted_ns = 0;
  // How long it lay there, from when whoever coordinates was wanted.
  int64_t picked_up_ns = 0;
  int lane = 0;  // of the timeline; 0: none

 private:
  friend class OperationTable;

  const bool persistent_;
  // Under the table's lock. In the table, and where; it is completed by
  // whoever takes it out.
  bool pending_ = false;
  size_t index_ = 0;
  bool urgent_ = false;
  // Its place among those of its name.
  std::shared_ptr<NameQueue> queue_;
  SubmittedOperation* ahead_ = nullptr;
  SubmittedOperation* behind_ = nullptr;

 protected:
  // The world was lost while it was pending: a batch may be on its way out, and
  // it stays as it is. Written before it is done.
  bool lost_ = false;
};

using SubmittedPtr = std::shared_ptr<SubmittedOperation>;

// An operation that is submitted again and again. Made by
// Coordinator::MakePersistent, which has looked at name and request. Its memory
// can change between submissions. As a Completion it tells about the last
// submission; before the first it is done.
//
// While it is done it belongs to the application, one thread at a time; from
// its submission until it is done to the coordinator. Its memory is not
// released on completion, but with it, by Release or by the next Load. One that
// was pending when the world was lost stays as it is; nothing more is submitted
// then anyway.
class PersistentOperation final
    : public SubmittedOperation,
      public std::enable_shared_from_this<PersistentOperation> {
 public:
  PersistentOperation(Operation operation, const OperationTable* table)
      : SubmittedOperation(std::move(operation), /*persistent=*/true),
        table_(table) {}

  // What the submissions that follow are: `request`, of the same name and
  // process set and of a kind that MakePersistent takes, and its memory, as in
  // Operation. With a local error they fail on every rank for that reason, and
  // there is no memory. Allocates nothing where a former request was as large.
  // Errors: InvalidArgument for spans that do not fit the request; Load must
  // follow then.
  absl::Status Load(const Request& request, bool absent, Inputs inputs,
                    Outputs outputs, std::shared_ptr<void> keep_alive);

  // Releases the memory and its owner; Load must follow.
  void Release();
  bool loaded() const { return loaded_; }

 private:
  friend class OperationTable;

  const OperationTable* const table_;  // whose it is
  bool loaded_ = true;
};

using PersistentPtr = std::shared_ptr<PersistentOperation>;

// Who makes persistent operations of a name: one part of the program alone,
// for which a second one would be a mistake; or anybody.
enum class Owner { kOne, kAny };

// ---- Checks that need no other rank.

// InvalidArgument unless the operation has a name, and inputs and outputs as
// Operation's comment says for its request. A request with a local error needs
// none.
absl::Status CheckMemory(const Operation& operation);

// Of an operation that passed CheckMemory, of a process set with these
// `members`: InvalidArgument unless this `rank` of the `world` can submit it.
absl::Status CheckMember(const Operation& operation,
                         absl::Span<const int> members,
                         absl::Span<const int> world, int rank);

// The part of a rank that has joined in an operation of the others: contributes
// nothing (the op's neutral element; no rows), and nobody reads its results.
// Its memory goes with it. Nobody completes it. Not for AfterJoin::kNeedsAll.
SubmittedPtr MakeNeutralOperation(Request request);

}  // namespace hvdlite::negotiation
