// Liveness: who is waited for, since when, and when that is too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "negotiation/protocol/decision_maker.h"
#include "negotiation/protocol/decision_queue.h"
#include "negotiation/protocol/heartbeat.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/process_look.h"
#include "negotiation/protocol/stall_inspector.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {

// What a rank does, as far as waiting goes. Of several that apply, the last.
enum class Phase {
  kComputing,
  kNegotiating,
  kLeaving,
  kAtGate,
  kEnding,  // all ranks have left: the last gate
  kInDataPlane,
};

// The rules, in one table. In each phase
// - silent neighbours: those in the tree that give no sign of life for
//   `Heartbeat::Options::interval` are asked for one; after its `timeout` the
//   world ends, naming rank and host;
// - missing ranks: after `stall_warning` the root asks all ranks, and tells who
//   has not done what is waited for, and what they did last and when; after
//   `stall_failure` the world ends for it;
// - late at the gate: after `stall_warning` this rank tells behind which
//   neighbours somebody is missing. It is no error: they may be in a long
//   batch. But at the last gate the world ends for it after `stall_failure`;
// - must return: after `watchdog_seconds` without a sign of progress all waits
//   of this rank end, from a thread of its own. The only phase in which a rank
//   cannot serve its messages.
struct PhaseRule {
  Phase phase;
  const char* waits_for;
  bool silent_neighbours;
  bool missing_ranks;
  bool late_at_gate;
  bool must_return;
};
inline constexpr PhaseRule kPhaseRules[] = {
    //                    waits for              silent missing late   must
    {Phase::kComputing, "nobody", false, false, false, false},
    {Phase::kNegotiating, "what others submit", true, true, false, false},
    {Phase::kLeaving, "others to leave, too", true, true, false, false},
    {Phase::kAtGate, "others at a gate", true, true, true, false},
    {Phase::kEnding, "others to end, too", true, false, true, false},
    {Phase::kInDataPlane, "a call's return", true, true, false, true},
};
constexpr const PhaseRule& RuleOf(Phase phase) {
  return kPhaseRules[static_cast<size_t>(phase)];
}

// One rank's watch over itself and the others, but for the phase in which it
// has to be watched from outside (Watchdog); and who has left. Its parts:
// Heartbeat for silent neighbours, StallInspector for missing ranks, StallProbe
// for what these are doing. Pure: no I/O, threads or clock.
class Liveness {
 public:
  struct Options {
    int rank = 0;
    std::shared_ptr<const WorldLayout> layout;  // not null
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    Heartbeat::Options heartbeat;
    bool explains = false;                         // as StallProbe::Options
    std::shared_ptr<const std::vector<int>> pids;  // null: not known
  };
  // What it looks at, and where it puts what others are to hear; outlives this.
  struct Surroundings {
    const TreePosition& tree;
    const Membership& membership;
    TensorTable& table;
    const DecisionQueue& queue;
    ReportDraft& to_parent;
    wire::Directive& to_children;
    DecisionMaker& decision_maker;  // at the root alone
    // The world is to be aborted. `is_cut_off`: the root's answer would not
    // come. True: it is.
    std::function<bool(const std::string& reason, bool is_cut_off)> end_world;
  };
  Liveness(const Options& options, Surroundings surroundings);

  // What this rank does, but for what it has decided.
  struct Situation {
    bool over = false;   // nothing more is to come of anybody
    bool waits = false;  // for what it has submitted
    std::optional<int64_t> joining_since_ns;
  };
  // Sets the time for what follows, and looks for what takes too long; false if
  // it is not time for that.
  bool Advance(const Situation& situation, int64_t now_ns);
  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns(const Situation& situation) const;

  // Signs of life: of a neighbour's message, and what to add to one.
  void OnMessage(int from, const wire::Message& message) {
    heartbeat_.OnMessage(from, message.ping(), now_ns_);
  }
  Heartbeat::Signs TakeSigns(int to, bool sends) {
    return heartbeat_.Take(to, sends);
  }

  // What a child reports of ranks that have left, and of those that wait.
  void OnReport(int source, const wire::Report& report,
                const Situation& situation);
  // A probe has come from the parent.
  void OnProbe(const wire::Probe& probe);

  // As Negotiator has them; true: something has happened. `waits`: a thread of
  // this rank waits for others meanwhile.
  bool Explain(absl::FunctionRef<std::optional<Explanation>()> self,
               absl::FunctionRef<std::optional<ProcessSample>(int rank)> look,
               bool waits);
  void AskEverybody(const Situation& situation);
  void Leave(const std::string& reason);
  std::vector<std::string> TakeWarnings();

  // For what is told of this rank's last deeds: it has submitted the slot's
  // operation; it is about to forget ids; it has executed a decision.
  void OnSubmit(const TensorSlot& slot) { stalls_.probe().OnSubmit(slot); }
  void OnForget() { stalls_.probe().KeepLastName(surroundings_.table); }
  void OnDone(const std::string& name) {
    stalls_.probe().OnDone(name, now_ns_);
  }

 private:
  bool is_root() const { return surroundings_.tree.parent < 0; }
  Phase PhaseIn(const Situation& situation) const;
  bool OnLost(const Heartbeat::Lost& lost);
  // This rank waits at the gate of the next decision for long.
  void OnLateAtGate(absl::Duration waiting);
  std::string DescribeLateAtGate(absl::Duration waiting) const;
  // The subtree's first rank leaves; or every rank of a source has left.
  void OnDeparture(const wire::Departure& departure);
  void OnAllLeft(int source);
  // Passes on what has been found out.
  void Inspect();
  // At the root: a probe's answer is complete.
  void Conclude(const wire::Answer& answer);

  const Options options_;
  const Surroundings surroundings_;
  const absl::Duration late_after_;
  Heartbeat heartbeat_;
  StallInspector stalls_;
  int64_t now_ns_ = 0;
  int64_t since_ns_ = 0;  // at the gate, or when this rank was late last
  Phase looked_phase_ = Phase::kComputing;  // in Advance()
  int64_t look_again_ns_ = 0;               // there, at the latest
  bool left_ = false;
  uint64_t left_sources_ = 0;  // of which every rank has left
  bool departing_ = false;     // some rank of the subtree has left
  // At the root: who left first, before all have told what they coalesce.
  std::optional<wire::Departure> departure_;
  std::optional<uint64_t> last_call_;  // the probe that asks for that
  bool last_call_answered_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace hvdlite::negotiation
