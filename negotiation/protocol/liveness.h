// Liveness decides which ranks are waited for, since when, and when the wait is
// too long.
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

// The activities of a rank that differ in waiting. If several apply, the last
// one counts.
enum class Phase {
  kComputing,
  kNegotiating,
  kLeaving,
  kAtGate,
  kEnding,  // all ranks have left: the last gate
  kInDataPlane,
};

// The rules are in one table. In each phase:
// - silent neighbours: neighbours in the tree that give no sign of life for
//   `Heartbeat::Options::interval` are pinged. After its `timeout` the world
//   ends; the error names rank and host.
// - missing ranks: after `stall_warning` the root asks all ranks. It reports
//   which have not done what is waited for, and what they did last and when.
//   After `stall_failure` the world ends.
// - late at the gate: after `stall_warning` this rank reports the neighbours
//   behind which ranks are missing. This is not an error: they may be in a long
//   reduction. But at the last gate the world ends after `stall_failure`.
// - must return: after `watchdog_seconds` without progress, another thread ends
//   all waits of this rank. This is the only phase in which a rank cannot
//   handle its messages.
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
    {Phase::kComputing, "nothing", false, false, false, false},
    {Phase::kNegotiating, "what others submit", true, true, false, false},
    {Phase::kLeaving, "others to leave, too", true, true, false, false},
    {Phase::kAtGate, "others at a gate", true, true, true, false},
    {Phase::kEnding, "others to end, too", true, false, true, false},
    {Phase::kInDataPlane, "a call's return", true, true, false, true},
};
constexpr const PhaseRule& RuleOf(Phase phase) {
  return kPhaseRules[static_cast<size_t>(phase)];
}

// One rank's watch over itself and the others, except the phase in which
// another thread has to watch it (Watchdog). It also knows which ranks have
// left. Its parts are Heartbeat for silent neighbours, StallInspector for
// missing ranks, and StallProbe for what these are doing. There is no I/O,
// thread or clock.
class Liveness {
 public:
  struct Options {
    int rank = 0;
    std::shared_ptr<const WorldLayout> layout;  // not null
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    Heartbeat::Options heartbeat;
    bool explains = false;                         // see StallProbe::Options
    std::shared_ptr<const std::vector<int>> pids;  // null: not known
  };
  // What it reads, and where it puts messages to others; must outlive it.
  struct HostEnvironment {
    const TreePosition& tree;
    const Membership& membership;
    TensorTable& table;
    const DecisionQueue& queue;
    ReportDraft& to_parent;
    wire::Directive& to_children;
    DecisionMaker& decision_maker;  // at the root only
    // Aborts the world. `is_cut_off`: the root's answer would not arrive.
    // Returns true if the world is aborted.
    std::function<bool(const std::string& reason, bool is_cut_off)> end_world;
  };
  Liveness(const Options& options, HostEnvironment host_environment);

  // What this rank does, apart from its decisions.
  struct Situation {
    bool over = false;   // no rank has anything more to send
    bool waits = false;  // for what it has submitted
    std::optional<int64_t> joining_since_ns;
  };
  // Sets the time for the following calls, and checks what takes too long.
  // Returns false if it is too early to check.
  bool Advance(const Situation& situation, int64_t now_ns);
  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns(const Situation& situation) const;

  // Signs of life: those in a neighbour's message, and those to add to a
  // message.
  void OnMessage(int from, const wire::Message& message) {
    heartbeat_.OnMessage(from, message.ping(), now_ns_);
  }
  Heartbeat::Signs TakeSigns(int to, bool sends) {
    return heartbeat_.Take(to, sends);
  }

  // Handles what a child reports about ranks that have left, and ranks that
  // wait.
  void OnReport(int source, const wire::Report& report,
                const Situation& situation);
  // A probe has come from the parent.
  void OnProbe(const wire::Probe& probe);

  // See Negotiator. True: something has happened. `waits`: a thread of this
  // rank waits for others meanwhile.
  bool Explain(absl::FunctionRef<std::optional<Explanation>()> self,
               absl::FunctionRef<std::optional<ProcessSample>(int rank)> look,
               bool waits);
  void AskEverybody(const Situation& situation);
  void Leave(const std::string& reason);
  std::vector<std::string> TakeWarnings();

  // Records this rank's latest actions: it has submitted the slot's operation;
  // it is about to forget ids; it has executed a decision.
  void OnSubmit(const TensorSlot& slot) { stalls_.probe().OnSubmit(slot); }
  void OnForget() { stalls_.probe().KeepLastName(host_environment_.table); }
  void OnDone(const std::string& name) {
    stalls_.probe().OnDone(name, now_ns_);
  }

 private:
  bool is_root() const { return host_environment_.tree.parent < 0; }
  Phase PhaseIn(const Situation& situation) const;
  bool OnLost(const Heartbeat::Lost& lost);
  // This rank has waited long at the gate of the next decision.
  void OnLateAtGate(absl::Duration waiting);
  std::string DescribeLateAtGate(absl::Duration waiting) const;
  // The subtree's first rank leaves, or every rank of a source has left.
  void OnDeparture(const wire::Departure& departure);
  void OnAllLeft(int source);
  // Passes on what has been found.
  void Inspect();
  // At the root: a probe's answer is complete.
  void Conclude(const wire::Answer& answer);

  const Options options_;
  const HostEnvironment host_environment_;
  const absl::Duration late_after_;
  Heartbeat heartbeat_;
  StallInspector stalls_;
  int64_t now_ns_ = 0;
  int64_t since_ns_ = 0;  // start of the wait, or last warning
  Phase looked_phase_ = Phase::kComputing;  // in Advance()
  int64_t look_again_ns_ = 0;               // in Advance(), at the latest
  bool left_ = false;
  uint64_t left_sources_ = 0;  // all ranks of these have left
  bool departing_ = false;     // some rank of the subtree has left
  // At the root: the first rank that left, until all ranks have sent the
  // reports that they hold back.
  std::optional<wire::Departure> departure_;
  std::optional<uint64_t> last_call_;  // the probe that asks for these
  bool last_call_answered_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace hvdlite::negotiation
