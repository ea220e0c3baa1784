// Where the ranks of an in-process communicator meet.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "collective/in_process/call.h"
#include "collective/in_process/in_process_communicator.h"

namespace hvdlite::collective {

// Ranks that call something wait here until all its members have called it. The
// last one to arrive carries it out on its thread, while the others sleep;
// groups without a rank in common do not wait for each other. Thread-safe.
//
// A status is kept as code and text and every rank gets a copy of its own:
// absl::Status shares its text between copies by a count that ThreadSanitizer
// does not see in a library that was built without it.
class World {
 public:
  // `ranks_in_outermost` are the ranks that its ranks have in the world that
  // they come from; for messages.
  World(std::vector<int> ranks_in_outermost, bool is_subgroup,
        InProcessOptions options);

  int size() const { return static_cast<int>(all_ranks_.size()); }
  absl::Span<const int> all_ranks() const { return all_ranks_; }

  // Blocks until all members of `call`, of which `rank` is one, have called it,
  // and it is done. InvalidArgument for all members if their calls do not fit
  // together; for all ranks if each waits for others that wait for something
  // else. Errors of absence break the world.
  absl::Status Meet(int rank, const Call& call);

  // `rank` will not call again.
  void Leave(int rank);

 private:
  struct Outcome {
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
    absl::Status ToStatus() const { return absl::Status(code, message); }
  };

  // A rank's place.
  struct Place {
    enum class State {
      kAway,     // not calling anything
      kWaiting,  // for other members
      kRunning,  // all members are there; one of them carries the call out
      kDone      // the outcome can be taken
    };
    State state = State::kAway;
    bool gone = false;
    Call call;
    Outcome outcome;
    base::CondVar changed;  // the state, or the world broke
  };

  // The rank waits for the same members as `call`.
  bool IsWaitingFor(int rank, const Call& call) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The members' calls, which are running now, if all have come; else empty.
  std::vector<Call> StartIfComplete(const Call& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Run(absl::Span<const Call> calls);
  absl::Status Wait(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Ends waits that nobody can end any more.
  void EndHopelessWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(absl::Span<const int> ranks, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BreakForMissing(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Break(absl::StatusCode code, const std::string& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<int> all_ranks_;  // 0, 1, ...
  const std::vector<int> ranks_in_outermost_;
  const std::string where_;  // ends every message
  const InProcessOptions options_;
  base::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);  // by rank
  Outcome broken_ ABSL_GUARDED_BY(mutex_);             // latched
};

}  // namespace hvdlite::collective
