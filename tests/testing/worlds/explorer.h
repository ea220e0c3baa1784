// Explorer explores all orders of events of a few ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

// Ranks run programs: lists of operations, which they submit one by one. Then
// they wait for all of them, and leave once no rank has any left. A rank either
// handles its messages or is inside a call of the data plane. Such a call
// returns once all members are in it; meanwhile the rank neither receives nor
// sends. Time passes only when nothing else can happen.
struct Scenario {
  std::vector<int> host_of_rank;
  int tree_arity = 8;
  // The usual order. False: calls begin and return as soon as possible, and
  // operations are submitted once there is nothing to read. True: all
  // operations are submitted and read before any call begins.
  bool hears_first = false;
  // Leaves of the tree report that they wait, so that they count as arrived.
  bool leaves_wait = true;
  // Process sets that exist from the beginning; ids are 1, 2, ...
  std::vector<std::vector<int>> process_sets = {};
  // Operations that all ranks have run before, in this order.
  std::vector<negotiation::Request> run_before = {};
  uint64_t max_idle_uses = 32768;  // see Negotiator::Options
  // One program per rank.
  std::vector<std::vector<negotiation::Request>> programs;
  // Rules that are broken on purpose. Ranks begin to block although their news
  // about the gate has not been sent;
  bool blocks_with_backlog = false;
  // or although they have not relayed the news of an earlier gate.
  bool blocks_before_relaying = false;
};

struct Action {
  enum Kind {
    kFinish,  // a call of the data plane returns
    kBegin,   // carries the next decision out, or begins to
    kRead,    // reads the ring from `other`
    kPush,    // fills the ring to `other`
    kNotice,  // detects that `other` has died
    kSubmit,  // the next operation of its program
    kLeave,   // its program is over
    kCrash,   // its process ends
    kStop,    // its process is stopped for good
  };
  Kind kind;
  int rank = 0;
  int other = -1;
  friend bool operator==(const Action&, const Action&) = default;
};

// Explores the possible events depth first. In each state one action is the
// usual next one. The distance of an order of events is the number of times
// that it takes another action. All orders up to distance `max_deviations` are
// covered. If every rank has seen the same in the same order, two orders differ
// only in independent events and are explored once. A fault may happen at any
// time. Once time passes, events happen in the usual order.
class Explorer {
 public:
  Explorer(const Scenario& scenario, int max_deviations,
           std::optional<Action> fault = std::nullopt)
      : scenario_(scenario), max_deviations_(max_deviations), fault_(fault) {}

  // Returns the first order of events with a bad end, as text; empty if there
  // is none. At a good end no rank waits for ever, all ranks have done the
  // same, and all have ended.
  std::string Run();

  int64_t paths() const { return paths_; }
  size_t states() const { return explored_.size(); }

 private:
  struct Choice {
    size_t taken = 0;
    size_t available = 0;
    int deviations = 0;  // deviations before it
    bool last_is_fault = false;
  };

  // A fault is not a deviation.
  static bool Deviates(const Choice& choice, size_t taken) {
    return taken > 0 &&
           !(choice.last_is_fault && taken + 1 == choice.available);
  }
  std::string RunPath(std::vector<Choice>& path);
  // Changes the path to the next one in depth-first order; false if there is
  // none.
  bool NextPath(std::vector<Choice>& path) const;

  const Scenario scenario_;
  const int max_deviations_;
  const std::optional<Action> fault_;
  std::unordered_map<uint64_t, int> explored_;  // deviations left, by state
  int64_t paths_ = 0;
};

}  // namespace hvdlite::testing
