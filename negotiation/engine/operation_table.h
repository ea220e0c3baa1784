// OperationTable: what this rank has submitted and not completed; and what all
// parts of its coordinator work with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "hvdlite/config.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/process_look.h"
#include "timeline/record/trace_event.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::negotiation {

// Of persistent operations that the application has destroyed: what all ranks
// may forget (released_names.h).
class ReleasedNames;

// What a rank coordinates with; the references outlive its coordinator.
struct CoordinatorEnvironment {
  ControlChannel& channel;
  collective::Communicator& communicator;
  const collective::Topology& topology;
  const base::Clock& clock;
  const base::Logger& logger;
  // Called, on the watchdog's thread, when an application thread that
  // coordinates does not come back from the data plane; it should end the
  // process.
  std::function<void(const absl::Status&)> stuck;
  // Called, on any thread and maybe more than once, when the world ends for
  // what this rank has submitted or will submit: a rank has left, or it broke.
  std::function<void(const absl::Status&)> ended = {};
  // For hangs; empty: nothing is known. For whoever coordinates: notes from
  // time to time what this process uses; tells what it is doing; and what
  // another rank's does, seen from outside (nullopt: it cannot be seen).
  std::function<void()> sample = {};
  std::function<Explanation()> explain = {};
  std::function<std::optional<ProcessSample>(int rank)> look = {};
  // The process of each rank; null: not known.
  std::shared_ptr<const std::vector<int>> pids = nullptr;
};

struct CoordinatorOptions {
  Config config;
  // The CPU that the background thread is bound to; none: it runs wherever the
  // thread may that starts the coordinator.
  std::optional<int> coordinator_cpu = std::nullopt;
  // How long the background thread looks again at once before it sleeps, and
  // takes submissions in without letting them gather. Above zero only where it
  // has a core to itself.
  absl::Duration spin = absl::ZeroDuration();
  // The same for an application thread that coordinates while it waits, and
  // has nothing better to do, inside the data plane. Zero where ranks have to
  // share cores.
  absl::Duration spin_while_waiting = absl::Microseconds(50);
};

// Where application threads and whoever coordinates meet: the one lock between
// them. Operations of one name go to the negotiation one after the other, in
// the order of their submission; a join follows all that was submitted before
// it. Thread-safe.
class OperationTable {
 public:
  // Submissions of less than `min_batch_bytes` are left to gather.
  OperationTable(int rank, int world_size, int64_t min_batch_bytes,
                 const base::Clock& clock);

  // A process set that this rank is in begins or ends. Returns the operations
  // of a set that ends which have not gone to the negotiation; they are to be
  // completed along with those that have.
  void AddProcessSet(ProcessSetId id, std::vector<int> members);
  std::vector<SubmittedPtr> RemoveProcessSet(ProcessSetId id);

  // `worth_waking`: whoever coordinates should take the inputs in now, if it
  // sleeps. Errors as Coordinator::Submit.
  absl::StatusOr<std::shared_ptr<const Completion>> Submit(
      Operation&& operation, bool* worth_waking);
  absl::StatusOr<PersistentPtr> MakePersistent(Operation&& operation,
                                               Owner owner);
  absl::Status SubmitPersistent(absl::Span<const PersistentPtr> operations,
                                bool* worth_waking);

  // Somebody waits for this operation, and so for those of its name that were
  // submitted before it. Only the first time counts.
  void MarkUrgent(const Completion& completion);

  // Nothing more is submitted. False if that was so already.
  bool Leave(const std::string& reason);
  // Why this rank has left, if it has.
  std::optional<std::string> left_because() const;

  // What has come in since the last call.
  struct Inputs {
    std::vector<SubmittedPtr> submitted;
    std::vector<SubmittedPtr> urgent;
    std::optional<std::string> leaving;
    // Names whose persistent operation is gone, and that have no other of one
    // owner by now.
    std::vector<std::string> released;
    // When whoever coordinates was first wanted to take them in; 0: not yet.
    int64_t wanted_ns = 0;
  };
  // What `inputs` held is forgotten, but its memory used again. `awaited`:
  // somebody waits for what this rank may submit. `coalesced_bytes`: what was
  // taken in before, and is coalesced with what follows.
  void TakeInputs(Inputs& inputs, bool awaited, int64_t coalesced_bytes);
  // There are inputs, and it does no harm if more gather.
  bool MayGather() const;
  // Operations have come in that should be taken in now.
  bool IsWorthWaking() const;

  // Ends operations, unless that has happened already: runs their done and
  // completes their Completions. Where that throws, none has ended.
  void Complete(absl::Span<const SubmittedPtr> operations,
                const absl::Status& status, const Outcome& outcome = {});

  // The world is lost: ends everything, now and later, with `status`, whether
  // or not there is memory. If `interrupted`, the operations' memory is kept
  // for ever.
  void Fail(const absl::Status& status, bool interrupted);

  // OK, or why the world is lost.
  absl::Status world_status() const;

  std::shared_ptr<timeline::TraceRecorder> recorder() const;
  // Records, as the counter IN_FLIGHT, how many operations are submitted and
  // not done, and the bytes of those that are recorded. Nothing without a
  // recorder.
  void RecordInFlight() const;
  void set_recorder(std::shared_ptr<timeline::TraceRecorder> recorder);

 private:
  // Whether anything can be submitted.
  absl::Status CheckOpen(const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckMembership(const Operation& operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSubmittable(const PersistentOperation& operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of a name; made where there are none.
  const std::shared_ptr<NameQueue>& QueueOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Until as many more are put in, the table allocates no memory for what it
  // holds: an operation is either in it as a whole or not at all.
  // `inputs`: those that are filled meanwhile.
  void MakeRoom(Inputs& inputs, size_t more)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its queue is known, and there is room.
  void PutIn(SubmittedPtr pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The negotiation is to hear of it: it is the first of its name.
  void HandOver(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: it is not in.
  bool TakeOut(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The part of that which is not about pending_.
  void Unlink(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkUrgent(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void End(SubmittedOperation& pending, const absl::Status& status,
                  const Outcome& outcome);

  int64_t GatheredBytes(const Request& request) const;
  // Whether the inputs are to be taken in at once, which it notes.
  bool WantsWaking(const SubmittedOperation& submitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int rank_;
  const int64_t min_batch_bytes_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  // Of the process sets that this rank is in.
  // (Not Abseil's maps, here and below: one that could not grow is damaged.)
  std::unordered_map<ProcessSetId, std::vector<int>> members_
      ABSL_GUARDED_BY(mutex_);
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status world_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<SubmittedPtr> pending_ ABSL_GUARDED_BY(mutex_);
  // Of names with persistent or pending operations.
  std::unordered_map<std::string, std::shared_ptr<NameQueue>> queues_
      ABSL_GUARDED_BY(mutex_);
  size_t queues_limit_ ABSL_GUARDED_BY(mutex_) = 64;  // forget unused ones then
  const std::shared_ptr<ReleasedNames> released_;
  int queued_ ABSL_GUARDED_BY(mutex_) = 0;  // behind another one of their name
  // Waits until there are none of these.
  SubmittedOperation* held_join_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Inputs inputs_ ABSL_GUARDED_BY(mutex_);
  // Of what is submitted, and of what is coalesced since it was taken in.
  int64_t gathered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool awaited_ ABSL_GUARDED_BY(mutex_) = false;
  // Why this rank has left; nullopt: it has not.
  std::optional<std::string> left_because_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<timeline::TraceRecorder> recorder_ ABSL_GUARDED_BY(mutex_);
  timeline::LaneAllocator lanes_ ABSL_GUARDED_BY(mutex_);
  int64_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that have a lane
  // Memory that peers or MPI may still write to.
  std::vector<SubmittedPtr> interrupted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::negotiation
