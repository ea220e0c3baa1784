// Liveness: who is waited for, since when, and when that is too long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "negotiation/protocol/heartbeat.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/stall_inspector.h"
#include "negotiation/protocol/tree.h"

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
//   `heartbeat_interval` are asked for one; after `heartbeat_timeout` the world
//   ends, naming rank and host;
// - missing ranks: after `stall_warning` the root asks all ranks, and tells who
//   has not done what is waited for, and what they did last and when; after
//   `stall_failure` the world ends for it;
// - late at the gate: after `stall_warning` this rank tells behind which
//   neighbours somebody is missing. It is no error: they may be in a long
//   batch. But at the last gate the world ends for it after `stall_failure`;
// - must return: after `watchdog_deadline` without a sign of progress all waits
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
// has to be watched from outside (Watchdog). Its parts: Heartbeat for silent
// neighbours, StallInspector for missing ranks. Pure: no I/O, threads or clock.
class Liveness {
 public:
  struct Options {
    int rank = 0;
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    Heartbeat::Options heartbeat;
  };
  // `tree` and `membership` outlive this.
  Liveness(const Options& options, const TreePosition& tree,
           const Membership& membership);

  struct Findings {
    std::optional<Heartbeat::Lost> lost;  // a neighbour
    // How long this rank has been at its gate: once per `stall_warning`, or
    // `stall_failure` if that is shorter.
    std::optional<absl::Duration> late_at_gate;
  };
  // Sets the time, what this rank does, and since when it does so (which counts
  // at a gate).
  Findings Advance(Phase phase, int64_t since_ns, int64_t now_ns);

  Heartbeat& heartbeat() { return heartbeat_; }
  StallInspector& stalls() { return stalls_; }

  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns(Phase phase) const;

 private:
  const absl::Duration late_after_;
  Heartbeat heartbeat_;
  StallInspector stalls_;
  int64_t since_ns_ = 0;  // or when this rank was late last
};

}  // namespace hvdlite::negotiation
