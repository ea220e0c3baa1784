// Rounds is the work of the thread that holds the progress lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hvdlite/config.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/executor.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/progress_loop.h"
#include "negotiation/engine/progress_thread.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Connects the submissions of this rank, the messages of the other ranks, the
// negotiation and the data plane. For the thread that holds the progress lock
// (ProgressLoop), except AskEverybody, EndWatch and shut_down.
class Rounds {
 public:
  // References must outlive this. `wake` is signalled when there is news.
  Rounds(const Config& config, const CoordinatorEnvironment& environment,
         OperationTable& operations, WakeEvent& wake,
         ProgressLoop::Hooks hooks);

  // Runs one round: takes in news, and executes at most one decision.
  enum class Found { kNothing, kNews, kDecision };
  Found Drive();

  // Prepares the channel for a sleep, and takes in messages that prevent it.
  // False if messages keep arriving.
  bool Arm();

  // Returns `pause`, or less if there is something to do earlier.
  absl::Duration PauseUntilDeadline(absl::Duration pause) const;

  // There is something to execute or to send, or the other ranks wait for what
  // this one may submit.
  bool has_work() const;

  // The data plane's transport has to be called soon and repeatedly.
  bool has_to_carry_on() const;

  // Breaks the world because of an error of this rank, and informs the others;
  // sending may take `patience`.
  void Abort(const absl::Status& status, absl::Duration patience);

  // Call this while handling an exception that has left one of the functions
  // above. It breaks the world because of the exception, even without memory,
  // and informs the other ranks if possible. The state may be damaged: do not
  // destroy this object, and do not call the functions above again.
  void AbortForException() noexcept;

  // See Negotiator::set_waits and Executor::set_spin.
  void set_waits(Negotiator::Waits waits) { negotiator_.set_waits(waits); }
  void set_spin(absl::Duration spin) { executor_.set_spin(spin); }

  // Calls Negotiator::AskEverybody in the next round. Any thread and any signal
  // handler may call it.
  void AskEverybody() { asks_everybody_ = true; }

  // See Watchdog::End.
  void EndWatch() { watchdog_.End(); }

  // See Executor::Abandon.
  void Abandon() { executor_.Abandon(); }

  // All ranks have reached the end of the world.
  bool shut_down() const { return shut_down_.load(); }

 private:
  bool broken() const { return hooks_.broken.load(); }
  // Takes in submissions and messages, and sends; true if there were any.
  bool ServeChannel();
  absl::Status ServeDuringBucket();
  // Calls Communicator::MakeProgress when it is time for it.
  void CarryOnDataPlane();
  absl::Status TakeIn(const ControlMessage& received);
  // Answers questions of other ranks about processes.
  void Explain();
  bool TakeInputs(int64_t now_ns);
  void SendOutgoing();
  using Messages = std::vector<std::pair<int, std::string>>;  // by receiver
  Messages AbortMessages(const std::string& reason) const;
  // Sends what is left before this rank stops sending.
  void Flush(absl::Duration patience);
  bool HasUndelivered() const {
    return environment_.channel.delivered() < negotiator_.handed_out();
  }
  void Execute(const Decision& decision);
  std::optional<uint32_t> Stage(const Decision& decision);

  const CoordinatorEnvironment& environment_;
  OperationTable& operations_;
  const ProgressLoop::Hooks hooks_;
  WakeEvent& wake_;
  std::atomic<bool> shut_down_{false};
  std::atomic<bool> asks_everybody_{false};
  int64_t carry_on_at_ns_;
  Backoff carry_on_pause_;
  OperationTable::Inputs inputs_;  // being taken in
  Negotiator negotiator_;
  Messages no_memory_messages_;  // for when there is no memory
  Watchdog watchdog_;
  Executor executor_;
};

}  // namespace hvdlite::negotiation
