// Progress: what whoever has the role does for this rank, round by round.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/engine/executor.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/progress_thread.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {

// Brings together what this rank has submitted, the messages of the other
// ranks, the negotiation and the data plane. One thread at a time, but for
// shut_down().
class Progress {
 public:
  // What it needs to hear from the coordinator, and tells it.
  struct Hooks {
    // The world is broken: nothing is sent or run any more.
    const std::atomic<bool>& broken;
    std::function<void(const absl::Status& status)> break_world;
    // All ranks have left. False: this one does not end yet.
    std::function<bool()> come_to_end;
    // A decision has been carried out: operations may be done.
    std::function<void()> carried_out;
  };
  // References outlive this.
  Progress(const CoordinatorOptions& options,
           const Coordinator::Environment& environment,
           OperationTable& operations, Watchdog& watchdog, WakeEvent& wake,
           Hooks hooks);

  // One round: takes in what is new, carries out at most one decision. True if
  // anything happened.
  bool Drive();

  // Prepares the channel for a sleep, taking in what keeps it from that; false
  // if more and more comes.
  bool Arm();

  // `pause`, or less where there is something to do before it is over.
  absl::Duration PauseUntilDeadline(absl::Duration pause) const;

  // Something is to be carried out or sent, or the other ranks wait for what
  // this one may submit.
  bool has_work() const;

  // Breaks the world because of an error of this rank, and tells the others,
  // for which there is `patience`.
  void GiveUp(const absl::Status& status, absl::Duration patience);

  // As Negotiator::set_waits, Negotiator::set_asks and Executor::set_spin.
  void set_waits(bool waits) { negotiator_.set_waits(waits); }
  void set_asks(bool asks) { negotiator_.set_asks(asks); }
  void set_spin(absl::Duration spin) { executor_.set_spin(spin); }

  // As Executor::AbandonProcessSets.
  void AbandonProcessSets() { executor_.AbandonProcessSets(); }

  // All ranks have come to the end of the world.
  bool shut_down() const { return shut_down_.load(); }

 private:
  bool broken() const { return hooks_.broken.load(); }
  // Takes in submissions and messages, and sends; true if there were any.
  bool ServeChannel();
  absl::Status ServeDuringBatch();
  absl::Status TakeIn(const ControlMessage& received);
  bool TakeInputs();
  void SendOutgoing();
  bool HasUndelivered() const {
    return environment_.channel.delivered() < negotiator_.handed_out();
  }
  void CarryOut(const Decision& decision);
  std::optional<uint32_t> FlagsAtGate(const Decision& decision);

  const Coordinator::Environment& environment_;
  OperationTable& operations_;
  WakeEvent& wake_;
  const Hooks hooks_;
  std::atomic<bool> shut_down_{false};
  OperationTable::Inputs inputs_;  // as they are taken in
  Negotiator negotiator_;
  Executor executor_;
};

}  // namespace hvdlite::negotiation
