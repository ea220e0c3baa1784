// Progress: what whoever holds the progress lock does for this rank, round by
// round.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
#include "negotiation/engine/progress_thread.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Brings together what this rank has submitted, the messages of the other
// ranks, the negotiation and the data plane. For whoever holds its lock(), but
// for wake() and shut_down().
class Progress {
 public:
  // What it needs to hear from the coordinator, and tells it.
  struct Hooks {
    // Why the world is broken once this rank has no memory left.
    absl::Status no_memory;
    // The world is broken: nothing is sent or run any more.
    const std::atomic<bool>& broken;
    std::function<void(const absl::Status& status)> break_world;
    // All ranks have left. False: this one does not end yet.
    std::function<bool()> come_to_end;
    // The thread that coordinates has not come back from `what`, a call of the
    // data plane. On the watchdog's thread.
    std::function<void(const std::string& what)> stuck;
  };
  // References outlive this.
  Progress(const Config& config, const CoordinatorEnvironment& environment,
           OperationTable& operations, Hooks hooks);

  ProgressLock& lock() { return lock_; }
  // Wakes the thread that coordinates, if it sleeps.
  WakeEvent& wake() { return wake_; }
  Napping& napping() { return napping_; }

  // One round: takes in what is new, executes at most one decision. True if
  // anything happened.
  bool Drive();

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

  // As Negotiator::set_waits, Negotiator::set_asks and Executor::set_spin.
  void set_waits(bool waits) { negotiator_.set_waits(waits); }
  void set_asks(bool asks) { negotiator_.set_asks(asks); }
  void set_spin(absl::Duration spin) { executor_.set_spin(spin); }

  // As Negotiator::AskEverybody, a moment later. For any thread, and for signal
  // handlers.
  void AskEverybody() {
    asks_everybody_ = true;
    wake_.Signal();
  }

  // As Watchdog::End.
  void EndWatch() { watchdog_.End(); }

  // As Executor::AbandonProcessSets.
  void AbandonProcessSets() { executor_.AbandonProcessSets(); }

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
  const Hooks hooks_;
  ProgressLock lock_;
  WakeEvent wake_;
  Napping napping_;
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
