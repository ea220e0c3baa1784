// Operation is what an application submits. Completion reports its result.
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

// One operation on its tensors. Tensors are contiguous bytes; the MemoryRule of
// the kind defines their sizes.
struct Operation {
  Request request;
  // This rank has no gradient for the operation. It contributes the op's
  // neutral element, and gets the result if any rank has a gradient. If no rank
  // has one, the operation ends without a reduction, and
  // Completion::absent_everywhere() is true. `inputs` is then empty. Only for
  // kinds with CollectiveTraits::may_be_absent.
  bool absent = false;
  // The training step of the operation; 0: none. If the ranks are in different
  // steps, the operation fails on every rank.
  uint32_t step = 0;
  Inputs inputs;    // one per tensor
  Outputs outputs;  // one per tensor; empty if `allocate` makes them
  // Allgather (MemoryRule::kRows): the number of rows of each tensor. Alltoall
  // (kSplitRows): the number of rows of its tensor for each member of the
  // process set.
  std::vector<int64_t> rows;
  // For allgather and alltoall. Called once, as soon as it is known how many
  // rows arrive, on the thread that holds the progress lock. Returns the
  // outputs, one per tensor: the rows of all members, one member after the
  // other. Must not block or throw. Its error breaks the world, since the other
  // ranks cannot be stopped any more.
  std::function<absl::StatusOr<Outputs>(const RowsByMember& rows)> allocate;
  // The owner of that memory; released after completion. If the operation was
  // interrupted inside the data plane, it is never released: peers or MPI may
  // still write to the memory.
  std::shared_ptr<void> keep_alive;
  // Runs exactly once if Submit returned OK, on the thread that holds the
  // progress lock, under no mutex, before waiters are released. Must not block
  // or throw; may Submit.
  std::function<void(const absl::Status&)> done;
  // The submitting thread will Wait() for the operation next, and so runs the
  // progress loop itself: the background thread is not woken.
  bool caller_waits = false;

  // The size of the tensors that this rank contributes.
  int64_t bytes() const;
};

// The result of an operation, besides its outputs and status.
struct Outcome {
  // Every rank submitted the operation as absent; nothing was reduced.
  bool absent_everywhere = false;
  // The id of a new process set; for a join, the last rank to join.
  int64_t value = 0;
  // Not 0: the operation failed because the ranks were in different training
  // steps (Operation::step). All of them continue with this step.
  uint32_t next_step = 0;
};

// The state of a submitted operation; see Coordinator. Thread-safe.
class Completion {
 public:
  virtual ~Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  virtual const std::string& name() const = 0;
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Valid only once done(), and until a persistent operation is submitted
  // again.
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
  // Resets done(), before the operation is submitted again.
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

// The pending operations of one name on this rank, in the order of their
// submission. The first is negotiated; each of the others waits for its
// predecessor to end.
struct NameQueue {
  SubmittedOperation* last = nullptr;
  // The persistent operation of this name with Owner::kOne, if any.
  std::weak_ptr<PersistentOperation> persistent;
};

// An operation from its submission to its completion. The application sees only
// its base class Completion.
class SubmittedOperation : public Completion {
 public:
  SubmittedOperation() : Completion(/*done=*/false), persistent_(false) {}
  explicit SubmittedOperation(Operation submitted, bool persistent = false)
      : Completion(/*done=*/persistent),
        operation(std::move(submitted)),
        persistent_(persistent) {}

  const std::string& name() const final { return operation.request.name; }

  // While the operation is pending, the thread that holds the progress lock
  // uses it; otherwise the application does.
  Operation operation;
  SlotHint hint;  // under the progress lock

  int64_t submitted_ns = 0;
  // How long it waited to be picked up, from the request that the progress loop
  // run.
  int64_t picked_up_ns = 0;
  int track = 0;  // track in the timeline; 0: none

 private:
  friend class OperationTable;

  const bool persistent_;
  // Under the table's lock: whether it is in the table, and where. The thread
  // that takes it out completes it.
  bool pending_ = false;
  size_t index_ = 0;
  bool urgent_ = false;
  // Its place among the operations of its name.
  std::shared_ptr<NameQueue> queue_;
  SubmittedOperation* ahead_ = nullptr;
  SubmittedOperation* behind_ = nullptr;

 protected:
  // The world was lost while the operation was pending. A bucket may still use
  // it, so it is not changed. Written before it is done.
  bool lost_ = false;
};

using SubmittedPtr = std::shared_ptr<SubmittedOperation>;

// An operation that is submitted again and again. Coordinator::MakePersistent
// makes it, and checks its name and its request. Its memory may change between
// submissions. As a Completion it reports the last submission; before the first
// one it is done.
//
// While it is done, it belongs to the application, one thread at a time; while
// it is pending, to the coordinator. Its memory is released not on completion,
// but by its destructor, by Release or by the next Load. An operation that was
// pending when the world was lost keeps its state; nothing can be submitted
// then.
class PersistentOperation final
    : public SubmittedOperation,
      public std::enable_shared_from_this<PersistentOperation> {
 public:
  PersistentOperation(Operation operation, const OperationTable* table)
      : SubmittedOperation(std::move(operation), /*persistent=*/true),
        table_(table) {}

  // Sets what the following submissions do: `request`, with the same name and
  // process set, of a kind that MakePersistent accepts, and its memory, as in
  // Operation. With a local error, submissions fail on every rank for that
  // reason, and there is no memory. Allocates nothing if a former request was
  // as large. Errors: InvalidArgument for spans that do not fit the request;
  // call Load again then.
  absl::Status Load(const Request& request, bool absent, Inputs inputs,
                    Outputs outputs, std::shared_ptr<void> keep_alive);

  // Releases the memory and its owner; call Load before the next submission.
  void Release();
  bool loaded() const { return loaded_; }

 private:
  friend class OperationTable;

  const OperationTable* const table_;  // the table that it belongs to
  bool loaded_ = true;
};

using PersistentPtr = std::shared_ptr<PersistentOperation>;

// Who may make persistent operations of a name. kOne: one part of the program,
// and a second one is a mistake. kAny: any part.
enum class Owner { kOne, kAny };

// ---- Checks that need no other rank.

// InvalidArgument unless the operation has a name, and inputs and outputs as
// Operation's comment requires. A request with a local error needs none.
absl::Status CheckMemory(const Operation& operation);

// For an operation that passed CheckMemory, in a process set with these
// `members`: InvalidArgument unless this `rank` of the `world` can submit it.
absl::Status CheckMember(const Operation& operation,
                         absl::Span<const int> members,
                         absl::Span<const int> world, int rank);

// The part of a joined rank in an operation of the others. It contributes the
// op's neutral element, or no rows, and its results are not read. It owns its
// memory. It is never completed. Not for AfterJoin::kNeedsAll.
SubmittedPtr MakeNeutralOperation(Request request);

}  // namespace hvdlite::negotiation
