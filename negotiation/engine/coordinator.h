// Coordinator: one rank's part in agreeing on batches and running them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "hvdlite/config.h"
#include "negotiation/engine/operation.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/progress_loop.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::negotiation {

// Owns the negotiation and runs every batch of this rank. One thread at a
// time coordinates (ProgressLoop), and makes every call on the channel and the
// communicator: the background thread while the application computes, or an
// application thread that blocks in Wait().
//
// Thread-safe but for Shutdown, Close and cpu_time, which one thread calls.
// What was submitted may outlive Close(); it then finds the coordinator closed.
//
// What throws while a thread coordinates (no memory, as a rule) breaks the
// world, and goes no further; the submission of an operation may throw, and
// nothing is submitted then.
//
// Errors of operations: InvalidArgument when the ranks disagree about it, one
// of them refuses, or a rank that has joined is needed (the world stays
// healthy), Unavailable when the world is lost (a rank left, the transport
// broke, the coordinator was stuck): then everything pending and later fails
// with the same status.
//
// Operations of one name: the first that each rank submits belong together, so
// do the second ones, and so on. A rank may submit the next before the last is
// done; it follows once that has ended, with success or without.
//
// Process sets: an operation of kind kAddProcessSet, submitted by all ranks of
// the world, makes one; Completion::value() is its id. Operations whose
// Request::process_set is that id are submitted by its members alone, until all
// ranks submit a kRemoveProcessSet; what is pending in it then fails. Sets make
// progress independently of one another.
//
// Join: a rank that has submitted a kJoin takes part in everything that the
// others submit, with neutral elements, until all ranks have joined; that
// completes it. It can submit nothing meanwhile. Its own pending operations
// come first.
class Coordinator {
 public:
  // Collective: all ranks create theirs with the same configuration.
  Coordinator(const CoordinatorOptions& options,
              CoordinatorEnvironment environment);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  // As Close().
  ~Coordinator();

  // Errors, after which done does not run: InvalidArgument for spans that do
  // not fit the request or a process set that this rank is not in,
  // FailedPrecondition after a join, Unavailable when the world is lost or
  // this is closed.
  absl::StatusOr<std::shared_ptr<const Completion>> Submit(Operation operation);

  // For an allreduce, Adasum, broadcast or barrier that is submitted again and
  // again under one name: checks it once, so that a submission costs little.
  // Of those with one owner there is no second one of the name until the result
  // is destroyed. Errors: as Submit, AlreadyExists for a second one,
  // InvalidArgument for other kinds.
  absl::StatusOr<PersistentPtr> MakePersistent(Operation operation,
                                               Owner owner = Owner::kOne);

  // Submits persistent operations, in order and at once; each is done(). With
  // `caller_waits` as Operation::caller_waits. On an error none is submitted:
  // as Submit, and FailedPrecondition for one that is not done (or listed
  // twice) or has no memory.
  absl::Status SubmitPersistent(absl::Span<const PersistentPtr> operations,
                                bool caller_waits);

  // Blocks until the operation is done and returns its status. Tells the other
  // ranks that somebody waits for it, and those of its name before it, which
  // starts their batches. Takes over the progress lock if no other
  // thread is at it.
  absl::Status Wait(const Completion& completion);

  // As Wait, but for at most `timeout`; true if the operation is done.
  bool WaitFor(const Completion& completion, absl::Duration timeout);

  // Announces that this rank will submit nothing more because of `reason`,
  // which the other ranks' errors repeat. What is ready on all ranks still
  // runs; everything else that is pending, here and on the other ranks, fails.
  // Does not block. Only the first call counts.
  void Leave(const std::string& reason);

  // Leaves, then blocks until all ranks have left and this rank makes no more
  // calls on channel and communicator (both may be used by the caller again).
  // `at_end` runs on any thread, once nothing more can happen in this world;
  // this returns when all ranks have come back from theirs. Errors:
  // DeadlineExceeded after `timeout`, Unavailable if the world broke; `at_end`
  // may not have run then.
  absl::Status Shutdown(const std::string& reason, absl::Duration timeout,
                        std::function<void()> at_end);

  // Ends the world here at once, as if it had broken, unless it has: Shutdown()
  // then waits for nobody, and fails.
  void GiveUp(const std::string& reason);

  // Ends what coordinates, once no thread is inside: channel and communicator
  // are used no more. Everything is done then. Shutdown() must have returned,
  // or the world be broken. Only the first call counts.
  void Close();

  // As Communicator's; Unavailable once closed. The memory may outlive this.
  absl::StatusOr<collective::TensorMemory> AllocateTensors(size_t bytes);

  // Has rank 0 log what all ranks are doing, as soon as they have told. For
  // any thread and signal handlers, before Close().
  void AskEverybody() { loop_.AskEverybody(); }

  // OK while operations can be submitted; otherwise why not.
  absl::Status world_status() const { return operations_.world_status(); }

  // True if a thread did not come back from the data plane: the process should
  // end by _exit, without freeing buffers.
  bool interrupted() const { return interrupted_.load(); }

  // From now on events go to `recorder` (null: nowhere); those of a batch that
  // is running still go to the former one.
  void SetRecorder(std::shared_ptr<timeline::TraceRecorder> recorder) {
    operations_.set_recorder(std::move(recorder));
  }

  // CPU time that coordinating has taken so far, over all threads. Before
  // Close().
  absl::Duration cpu_time() const { return loop_.cpu_time(); }

 private:
  class Use;

  // Aborts the world, whether or not there is memory: nothing is sent or run
  // any more.
  void Break(const absl::Status& status) noexcept;
  void OnStuck(const std::string& what) noexcept;
  bool broken() const { return broken_.load(); }
  // All ranks have left. Unless this one has done so without Shutdown() so far:
  // ends what there is to end.
  bool ComeToEnd();

  const CoordinatorOptions options_;
  const CoordinatorEnvironment environment_;
  // Made while there is memory.
  const absl::Status no_memory_;
  const absl::Status stuck_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> interrupted_{false};
  std::function<void()> at_end_;  // set before shutting_down_ is
  std::atomic<bool> shutting_down_{false};

  OperationTable operations_;

  // Threads inside, and whether more may come.
  std::atomic<int> users_{0};
  std::atomic<bool> closed_{false};
  base::Mutex mutex_;
  absl::Status why_broken_ ABSL_GUARDED_BY(mutex_);
  base::CondVar unused_;  // closed, and nobody is inside

  ProgressLoop loop_;  // its threads use all of the above
};

}  // namespace hvdlite::negotiation
