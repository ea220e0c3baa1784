// Coordinator is one rank's part in agreeing on buckets and running them.
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

// Owns the negotiation and runs every bucket of this rank. One thread at a time
// holds the progress lock (ProgressLoop), and makes every call on the channel
// and the communicator. It is the background thread while the application
// computes, or an application thread that blocks in Wait().
//
// All functions are thread-safe, except Shutdown, Close and cpu_time: one
// thread calls these. Operations may outlive Close(); calls about them then
// find the coordinator closed.
//
// An exception in the thread that holds the lock (usually lack of memory)
// breaks the world and is not passed on. Submit may throw; then nothing is
// submitted.
//
// Errors of operations: InvalidArgument if the ranks disagree about the
// operation, one of them refuses it, or it needs a rank that has joined; the
// world stays healthy. Unavailable if the world is lost: a rank left, the
// transport broke, or the coordinator was stuck. Then all pending and later
// operations fail with the same status.
//
// Operations of one name: the first ones that the ranks submit belong together,
// then the second ones, and so on. A rank may submit the next one before the
// last has ended; it starts after that, even if the last one failed.
//
// Process sets: an operation of kind kAddProcessSet, submitted by all ranks of
// the world, makes one; Completion::value() is its id. Only its members submit
// operations with that id in Request::process_set. A kRemoveProcessSet of all
// ranks removes it; its pending operations fail. Sets make progress
// independently of one another.
//
// Join: a rank that has submitted a kJoin takes part in everything that the
// others submit, with neutral elements. The join completes when all ranks have
// joined. Until then the rank cannot submit anything. Its own earlier
// operations come first.
class Coordinator {
 public:
  // Collective: all ranks create their coordinators with the same
  // configuration.
  Coordinator(const CoordinatorOptions& options,
              CoordinatorEnvironment environment);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  // Calls Close().
  ~Coordinator();

  // Submits an operation. On an error `done` does not run. Errors:
  // InvalidArgument for spans that do not fit the request, or a process set
  // that this rank is not in; FailedPrecondition after a join; Unavailable if
  // the world is lost or the coordinator is closed.
  absl::StatusOr<std::shared_ptr<const Completion>> Submit(Operation operation);

  // Makes an operation that is submitted again and again under one name: an
  // allreduce, Adasum, broadcast or barrier. It is checked once, so that a
  // submission costs little. With Owner::kOne, a second one of the name is
  // refused until the result is destroyed. Errors: as for Submit; AlreadyExists
  // for a second one; InvalidArgument for other kinds.
  absl::StatusOr<PersistentPtr> MakePersistent(Operation operation,
                                               Owner owner = Owner::kOne);

  // Submits persistent operations together, in this order. Each must be done().
  // `caller_waits`: see Operation::caller_waits. On an error none is submitted.
  // Errors: as for Submit; FailedPrecondition if one is not done, is listed
  // twice, or has no memory.
  absl::Status SubmitPersistent(absl::Span<const PersistentPtr> operations,
                                bool caller_waits);

  // Blocks until the operation is done, and returns its status. Informs the
  // other ranks that a thread waits for it, and for earlier ones of its name;
  // this starts their buckets. Takes the progress lock if no other thread holds
  // it.
  absl::Status Wait(const Completion& completion);

  // Like Wait, but for at most `timeout`; true if the operation is done.
  bool WaitFor(const Completion& completion, absl::Duration timeout);

  // Announces that this rank will submit nothing more because of `reason`,
  // which the errors on the other ranks quote. Operations that are ready on all
  // ranks still run. All other pending operations fail, on all ranks. Does not
  // block. Only the first call counts.
  void Leave(const std::string& reason);

  // Calls Leave, then blocks until all ranks have left. After that this rank
  // makes no more calls on the channel and the communicator, and the caller may
  // use them. `at_end` runs on any thread, once nothing more can happen in this
  // world. Shutdown returns when `at_end` has returned on all ranks. Errors:
  // DeadlineExceeded after `timeout`; Unavailable if the world broke. Then
  // `at_end` may not have run.
  absl::Status Shutdown(const std::string& reason, absl::Duration timeout,
                        std::function<void()> at_end);

  // Ends the world on this rank immediately, as if it had broken. Shutdown()
  // then fails without waiting for other ranks. Does nothing if the world has
  // broken already.
  void GiveUp(const std::string& reason);

  // Ends the background thread, after all threads have left the coordinator.
  // The channel and the communicator are not used any more, and all operations
  // are done. Shutdown() must have returned, or the world must be broken. Only
  // the first call counts.
  void Close();

  // See Communicator::AllocateTensors. Unavailable once closed. The memory may
  // outlive the coordinator.
  absl::StatusOr<collective::TensorMemory> AllocateTensors(size_t bytes);

  // Makes rank 0 log what all ranks are doing, once they have answered. Any
  // thread and any signal handler may call it, before Close().
  void AskEverybody() { loop_.AskEverybody(); }

  // OK while operations can be submitted; otherwise the reason.
  absl::Status world_status() const { return operations_.world_status(); }

  // True if a thread did not return from the data plane. Then the process
  // should end by _exit, without freeing buffers.
  bool interrupted() const { return interrupted_.load(); }

  // Sends events to `recorder` from now on (null: nowhere). Events of a bucket
  // that is running still go to the former recorder.
  void SetRecorder(std::shared_ptr<timeline::TraceRecorder> recorder) {
    operations_.set_recorder(std::move(recorder));
  }

  // The CPU time that the progress loop has taken so far, over all threads.
  // Call it before Close().
  absl::Duration cpu_time() const { return loop_.cpu_time(); }

 private:
  class Use;

  // Aborts the world, even without memory: nothing is sent or run any more.
  void Break(const absl::Status& status) noexcept;
  void OnStuck(const std::string& what) noexcept;
  bool broken() const { return broken_.load(); }
  // Called when all ranks have left. Returns false if this rank left without
  // Shutdown(); otherwise runs `at_end_`.
  bool ComeToEnd();

  const CoordinatorOptions options_;
  const CoordinatorEnvironment environment_;
  // Both are made in advance, while there is memory.
  const absl::Status no_memory_;
  const absl::Status stuck_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> interrupted_{false};
  std::function<void()> at_end_;  // set before shutting_down_
  std::atomic<bool> shutting_down_{false};

  OperationTable operations_;

  // The threads inside, and whether more may enter.
  std::atomic<int> users_{0};
  std::atomic<bool> closed_{false};
  base::Mutex mutex_;
  absl::Status why_broken_ ABSL_GUARDED_BY(mutex_);
  base::CondVar unused_;  // closed, and no thread is inside

  ProgressLoop loop_;  // its threads use all members above
};

}  // namespace hvdlite::negotiation
