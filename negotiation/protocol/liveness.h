// Liveness: who is waited for, since when, and when that is too long.
// Heartbeat: notices neighbours in the tree that give no sign of life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/stall_inspector.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// While this rank waits for others, a neighbour that was silent for `interval`
// is pinged, and again every `interval`; any message of it is an answer. One
// that has not answered for `timeout` is lost: its process is stopped, its host
// is down, or the link is cut. A rank that is pinged does the same with its
// other neighbours: so all links are looked at on the way from a rank that
// waits to wherever the trouble is, and no message is sent while nobody waits.
//
// Time in which this rank itself did not look at its messages does not count:
// the answers may have come in meanwhile. Pure: no I/O, threads or clock.
class Heartbeat {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(1);
    absl::Duration timeout = absl::Seconds(30);  // infinite: no heartbeat
  };
  Heartbeat(const Options& options, absl::Span<const int> neighbours);

  // Sets the time. Returns a neighbour that is lost, if there is one; each of
  // them once per timeout.
  struct Lost {
    int rank = 0;
    absl::Duration silent;
  };
  std::optional<Lost> Advance(bool waiting, int64_t now_ns);

  // A message of a neighbour has arrived.
  void OnMessage(int rank, bool is_ping, int64_t now_ns);

  // What to send to a neighbour now, which gets another message in any case if
  // `sends`.
  struct Signs {
    bool ping = false;
    bool pong = false;
  };
  Signs Take(int rank, bool sends);

  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns() const;

 private:
  struct Neighbour {
    int rank = 0;
    bool watched = false;
    int64_t quiet_since_ns = 0;       // heard of then, or watched from then on
    std::optional<int64_t> asked_ns;  // first ping that is not answered
    int64_t last_ping_ns = 0;
    std::optional<int64_t> pinged_us_ns;  // when its last ping came
    bool to_ping = false;
    bool to_answer = false;
  };

  bool on() const { return options_.timeout < absl::InfiniteDuration(); }
  // Whether its ping is recent enough to be passed on.
  bool PassesOn(const Neighbour& neighbour, int64_t now_ns) const;
  Neighbour* Find(int rank);

  const Options options_;
  const int64_t interval_ns_;
  std::vector<Neighbour> neighbours_;
  int64_t now_ns_ = 0;
};

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
// has to be watched from outside (Watchdog). Its parts: Heartbeat for silent
// neighbours, StallInspector for missing ranks. Pure: no I/O, threads or clock.
class Liveness {
 public:
  struct Options {
    int rank = 0;
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    bool explains = false;  // as StallProbe::Options
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
  const StallInspector& stalls() const { return stalls_; }

  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns(Phase phase) const;

 private:
  const absl::Duration late_after_;
  Heartbeat heartbeat_;
  StallInspector stalls_;
  int64_t since_ns_ = 0;  // or when this rank was late last
};

}  // namespace hvdlite::negotiation
