// OperationTable holds the operations that this rank has submitted and not
// completed. CoordinatorEnvironment is what all parts of the coordinator share.
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

// Names of destroyed persistent operations, which all ranks may forget
// (released_names.h).
class ReleasedNames;

// What a coordinator works with. References must outlive the coordinator.
struct CoordinatorEnvironment {
  ControlChannel& channel;
  collective::Communicator& communicator;
  const collective::Topology& topology;
  const base::Clock& clock;
  const base::Logger& logger;
  // Called on the watchdog's thread when an application thread that runs the
  // progress loop does not return from the data plane. It should end the
  // process.
  std::function<void(const absl::Status&)> stuck;
  // Called when the world ends for operations of this rank: a rank has left, or
  // the world broke. It runs on any thread, perhaps more than once.
  std::function<void(const absl::Status&)> ended = {};
  // For reports of hangs; empty: nothing is known. The thread that holds the
  // progress lock calls them. From time to time, one samples the resources that
  // this process uses. The others describe what it is doing, and what another
  // rank's process does as seen from outside (nullopt: it cannot be seen).
  std::function<void()> sample = {};
  std::function<Explanation()> explain = {};
  std::function<std::optional<ProcessSample>(int rank)> look = {};
  // The process id of each rank; null: not known.
  std::shared_ptr<const std::vector<int>> pids = nullptr;
};

struct CoordinatorOptions {
  Config config;
  // The CPU that the background thread is bound to. None: the thread inherits
  // the CPUs of the thread that starts the coordinator.
  std::optional<int> coordinator_cpu = std::nullopt;
  // How long the background thread spins before it sleeps. While it spins, it
  // takes submissions in without letting them gather. Above zero only if the
  // thread has a core of its own.
  absl::Duration spin = absl::ZeroDuration();
  // The same for an application thread that runs the progress loop while it
  // waits, and inside the data plane. Zero if ranks have to share cores.
  absl::Duration spin_while_waiting = absl::Microseconds(50);
};

// Connects application threads with the progress loop; its lock is the only one
// between them. Operations of one name go to the negotiation one after the
// other, in the order of their submission. A join follows everything that was
// submitted before it. Thread-safe.
class OperationTable {
 public:
  // Submissions of less than `min_batch_bytes` may gather.
  OperationTable(int rank, int world_size, int64_t min_batch_bytes,
                 const base::Clock& clock);

  // A process set of this rank begins or ends. For a set that ends, returns its
  // operations that have not gone to the negotiation; complete them along with
  // those that have.
  void AddProcessSet(ProcessSetId id, std::vector<int> members);
  std::vector<SubmittedPtr> RemoveProcessSet(ProcessSetId id);

  // `worth_waking`: if the progress loop sleeps, wake it to take the inputs in
  // now. Errors: as for Coordinator::Submit.
  absl::StatusOr<std::shared_ptr<const Completion>> Submit(
      Operation&& operation, bool* worth_waking);
  absl::StatusOr<PersistentPtr> MakePersistent(Operation&& operation,
                                               Owner owner);
  absl::Status SubmitPersistent(absl::Span<const PersistentPtr> operations,
                                bool* worth_waking);

  // A thread waits for this operation, and so for earlier ones of its name.
  // Only the first call counts.
  void MarkUrgent(const Completion& completion);

  // Ends submissions. Returns false if they had ended before.
  bool Leave(const std::string& reason);
  // Why this rank has left, if it has.
  std::optional<std::string> left_because() const;

  // What has come in since the last call.
  struct Inputs {
    std::vector<SubmittedPtr> submitted;
    std::vector<SubmittedPtr> urgent;
    std::optional<std::string> leaving;
    // Names of destroyed persistent operations, unless another one with
    // Owner::kOne has taken the name.
    std::vector<std::string> released;
    // When the progress loop was first asked to take the inputs in; 0: not yet.
    int64_t wanted_ns = 0;
  };
  // Replaces the content of `inputs`, but reuses its memory. `awaited`: a
  // thread waits for what this rank may submit. `coalesced_bytes`: bytes that
  // were taken in before, and are coalesced with these.
  void TakeInputs(Inputs& inputs, bool awaited, int64_t coalesced_bytes);
  // There are inputs, and it does no harm to let more gather.
  bool MayGather() const;
  // Operations have come in that should be taken in now.
  bool IsWorthWaking() const;

  // Ends operations that have not ended yet: runs their `done` and completes
  // their Completions. If this throws, none has ended.
  void Complete(absl::Span<const SubmittedPtr> operations,
                const absl::Status& status, const Outcome& outcome = {});

  // The world is lost: ends all operations, now and later, with `status`, even
  // without memory. `interrupted`: their memory is never released.
  void Fail(const absl::Status& status, bool interrupted);

  // OK, or why the world is lost.
  absl::Status world_status() const;

  std::shared_ptr<timeline::TraceRecorder> recorder() const;
  // Records the counter IN_FLIGHT: how many operations are submitted and not
  // done, and the bytes of those that are recorded. Does nothing without a
  // recorder.
  void RecordInFlight() const;
  void set_recorder(std::shared_ptr<timeline::TraceRecorder> recorder);

 private:
  // OK, or why nothing can be submitted.
  absl::Status CheckOpen(const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckMembership(const Operation& operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckSubmittable(const PersistentOperation& operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The queue of a name; makes it if there is none.
  const std::shared_ptr<NameQueue>& QueueOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reserves room, so that putting in `more` operations allocates no memory: an
  // operation is either completely in the table or not at all. `inputs`: the
  // inputs that are being filled.
  void MakeRoom(Inputs& inputs, size_t more)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its queue must be known, and there must be room.
  void PutIn(SubmittedPtr pending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes it to the negotiation: it is the first of its name.
  void HandOver(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false if it is not in the table.
  bool TakeOut(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The part of TakeOut that does not concern pending_.
  void Unlink(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkUrgent(SubmittedOperation& pending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void End(SubmittedOperation& pending, const absl::Status& status,
                  const Outcome& outcome);

  int64_t GatheredBytes(const Request& request) const;
  // Whether the inputs should be taken in now. Records the time if so.
  bool WantsWaking(const SubmittedOperation& submitted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int rank_;
  const int64_t min_batch_bytes_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  // The process sets that this rank is in. (Abseil's maps are not used here and
  // below: a map that could not grow is damaged.)
  std::unordered_map<ProcessSetId, std::vector<int>> members_
      ABSL_GUARDED_BY(mutex_);
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status world_status_ ABSL_GUARDED_BY(mutex_);
  std::vector<SubmittedPtr> pending_ ABSL_GUARDED_BY(mutex_);
  // Names with persistent or pending operations.
  std::unordered_map<std::string, std::shared_ptr<NameQueue>> queues_
      ABSL_GUARDED_BY(mutex_);
  size_t queues_limit_ ABSL_GUARDED_BY(mutex_) = 64;  // then drop unused ones
  const std::shared_ptr<ReleasedNames> released_;
  int queued_ ABSL_GUARDED_BY(mutex_) = 0;  // behind others of their name
  // A join that waits until none of these are left.
  SubmittedOperation* held_join_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Inputs inputs_ ABSL_GUARDED_BY(mutex_);
  // The bytes submitted, and the bytes coalesced since they were taken in.
  int64_t gathered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool awaited_ ABSL_GUARDED_BY(mutex_) = false;
  // Why this rank has left; nullopt: it has not.
  std::optional<std::string> left_because_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<timeline::TraceRecorder> recorder_ ABSL_GUARDED_BY(mutex_);
  timeline::TrackAllocator tracks_ ABSL_GUARDED_BY(mutex_);
  int64_t in_flight_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that have a track
  // Memory that peers or MPI may still write to.
  std::vector<SubmittedPtr> interrupted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::negotiation
