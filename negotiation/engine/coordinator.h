// Coordinator: one rank's part in agreeing on batches and running them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/logging.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/operation.h"
#include "timeline/trace_recorder.h"

namespace hvdlite::negotiation {

struct CoordinatorOptions {
  // A batch takes no more tensors once it has this many bytes.
  int64_t fusion_threshold_bytes = int64_t{64} << 20;
  // A batch that nobody waits for starts when this much is ready.
  int64_t min_batch_bytes = int64_t{4} << 20;
  // Size of the fusion buffer: what is packed, reduced and unpacked at a time.
  int64_t chunk_bytes = int64_t{4} << 20;
  // Children of a rank in the tree that readiness travels up.
  int tree_arity = 8;
  // After how long an operation that misses ranks is warned about, and after
  // how long the world is given up for it (infinite: never).
  absl::Duration stall_warning = absl::Seconds(60);
  absl::Duration stall_failure = absl::InfiniteDuration();
  // After how long in one call of the data plane the coordinator counts as
  // stuck, and every wait is ended.
  absl::Duration watchdog_deadline = absl::Seconds(120);
  // After how long of silence a neighbour in the tree is asked for a sign of
  // life while operations are pending, and after how long without an answer the
  // world is given up (infinite: never, and nobody is asked). Longer than any
  // call of the data plane on one chunk takes.
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration heartbeat_timeout = absl::Seconds(30);
  // Longest pause between two looks at a control channel without descriptor.
  absl::Duration max_poll_pause = absl::Milliseconds(5);
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
  // Record every chunk in the timeline.
  bool trace_chunks = false;
  // While ranks have joined, averages divide by the size of the process set
  // rather than by the number of ranks that took part.
  bool join_average_over_world = false;
};

// Owns the negotiation and runs every batch of this rank. Coordinating is a
// role held by one thread at a time: the background thread while the
// application computes, or an application thread that blocks in Wait().
// Whoever has the role makes every call on the channel and the communicator.
//
// Submit*, Prepare, Wait*, Leave, SetRecorder and world_status are thread-safe.
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
  // References outlive the coordinator. Collective: all ranks create theirs
  // with the same options. `stuck` is called, on the watchdog's thread, when
  // the role's holder is an application thread that does not come back from the
  // data plane; it should end the process.
  struct Environment {
    ControlChannel& channel;
    collective::Communicator& communicator;
    const collective::Topology& topology;
    const base::Clock& clock;
    const base::Logger& logger;
    std::function<void(const absl::Status&)> stuck;
  };
  static std::unique_ptr<Coordinator> Start(const CoordinatorOptions& options,
                                            Environment environment);

  // Shutdown() must have returned, or the world be broken.
  virtual ~Coordinator() = default;

  // Errors, after which done does not run: InvalidArgument for spans that do
  // not fit the request or a process set that this rank is not in,
  // FailedPrecondition after a join, Unavailable when the world is lost.
  virtual absl::StatusOr<std::shared_ptr<const Completion>> Submit(
      Operation operation) = 0;

  // For an allreduce, Adasum, broadcast or barrier that is submitted again and
  // again under one name: checks it once, so that a submission costs little.
  // Until the result is destroyed there is no second one of its name. Errors:
  // as Submit, AlreadyExists for a second one, InvalidArgument for other kinds.
  virtual absl::StatusOr<std::shared_ptr<PreparedOperation>> Prepare(
      Operation operation) = 0;

  // Submits prepared operations, in order and at once; each is done(). With
  // `caller_waits` as Operation::caller_waits. On an error none is submitted:
  // as Submit, and FailedPrecondition for one that is not done (or listed
  // twice) or has no memory.
  virtual absl::Status SubmitPrepared(
      absl::Span<const std::shared_ptr<PreparedOperation>> operations,
      bool caller_waits) = 0;

  // Blocks until the operation is done and returns its status. Tells the other
  // ranks that somebody waits for it, and those of its name before it, which
  // starts their batches. Takes over the role of coordinating if no other
  // thread is at it.
  virtual absl::Status Wait(const Completion& completion) = 0;

  // As Wait, but for at most `timeout`; true if the operation is done.
  virtual bool WaitFor(const Completion& completion,
                       absl::Duration timeout) = 0;

  // Announces that this rank will submit nothing more because of `reason`,
  // which the other ranks' errors repeat. What is ready on all ranks still
  // runs; everything else that is pending, here and on the other ranks, fails.
  // Does not block. Only the first call counts.
  virtual void Leave(const std::string& reason) = 0;

  // Leaves, then blocks until all ranks have left and this rank makes no more
  // calls on channel and communicator (both may be used by the caller again).
  // `at_end` runs on any thread, once nothing more can happen in this world;
  // this returns when all ranks have come back from theirs. Errors:
  // DeadlineExceeded after `timeout`, Unavailable if the world broke; `at_end`
  // may not have run then.
  virtual absl::Status Shutdown(const std::string& reason,
                                absl::Duration timeout,
                                std::function<void()> at_end) = 0;

  // OK while operations can be submitted; otherwise why not.
  virtual absl::Status world_status() const = 0;

  // True if a thread did not come back from the data plane: the process should
  // end by _exit, without freeing buffers.
  virtual bool interrupted() const = 0;

  // From now on events go to `recorder` (null: nowhere); those of a batch that
  // is running still go to the former one.
  virtual void SetRecorder(
      std::shared_ptr<timeline::TraceRecorder> recorder) = 0;

  // CPU time that coordinating has taken so far, over all threads.
  virtual absl::Duration cpu_time() const = 0;
};

}  // namespace hvdlite::negotiation
