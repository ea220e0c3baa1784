// Rounds: what whoever holds the progress lock does for this rank.
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

// Brings together what this rank has submitted, the messages of the other
// ranks, the negotiation and the data plane. For whoever holds the progress
// lock (ProgressLoop), but for AskEverybody, EndWatch and shut_down.
class Rounds {
 public:
  // References outlive this. `wake`: what is signalled when something is new.
  Rounds(const Config& config, const CoordinatorEnvironment& environment,
         OperationTable& operations, WakeEvent& wake,
         ProgressLoop::Hooks hooks);

  // One round: takes in what is new, executes at most one decision.
  enum class Found { kNothing, kNews, kDecision };
  Found Drive();

  // Prepares the channel for a sleep, taking in what keeps it from that; false
  // if more and more comes.
  bool Arm();

  // `pause`, or less where there is something to do before it is over.
  absl::Duration PauseUntilDeadline(absl::Duration pause) const;

  // Something is to be executed or sent, or the other ranks wait for what
  // this one may submit.
  bool has_work() const;

  // The data plane's transport has to be called before long, again and again.
  bool has_to_carry_on() const;

  // Breaks the world because of an error of this rank, and tells the others,
  // for which there is `patience`.
  void Abort(const absl::Status& status, absl::Duration patience);

  // To be called while an exception is handled that has left one of the above:
  // breaks the world because of it, also without memory, and tells the others
  // if that is possible. Who calls destroys this no more, since its state may
  // be damaged; of the above nothing may be called again.
  void AbortForException() noexcept;

  // As Negotiator::set_waits and Executor::set_spin.
  void set_waits(Negotiator::Waits waits) { negotiator_.set_waits(waits); }
  void set_spin(absl::Duration spin) { executor_.set_spin(spin); }

  // As Negotiator::AskEverybody, in the next round. For any thread, and for
  // signal handlers.
  void AskEverybody() { asks_everybody_ = true; }

  // As Watchdog::End.
  void EndWatch() { watchdog_.End(); }

  // As Executor::Abandon.
  void Abandon() { executor_.Abandon(); }

  // All ranks have come to the end of the world.
  bool shut_down() const { return shut_down_.load(); }

 private:
  bool broken() const { return hooks_.broken.load(); }
  // Takes in submissions and messages, and sends; true if there were any.
  bool ServeChannel();
  absl::Status ServeDuringBatch();
  // Communicator::MakeProgress, when it is time for it.
  void CarryOnDataPlane();
  absl::Status TakeIn(const ControlMessage& received);
  // What other ranks want to know of processes.
  void Explain();
  bool TakeInputs(int64_t now_ns);
  void SendOutgoing();
  using Messages = std::vector<std::pair<int, std::string>>;  // by receiver
  Messages AbortMessages(const std::string& reason) const;
  // Before this rank falls silent.
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
  OperationTable::Inputs inputs_;  // as they are taken in
  Negotiator negotiator_;
  Messages no_memory_messages_;  // ready when there is no memory
  Watchdog watchdog_;
  Executor executor_;
};

}  // namespace hvdlite::negotiation
