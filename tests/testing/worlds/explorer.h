// Explorer: all orders in which things can happen to a few ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

// Ranks that run programs: lists of operations, which they submit one by one;
// then they wait for all of them, and leave once nobody has any left. A rank
// serves its messages, or it is inside a call of the data plane. Such a call
// comes back once all members are in it; meanwhile the rank neither receives
// nor sends. Time passes only when nothing else can happen.
struct Scenario {
  std::vector<int> host_of_rank;
  int tree_arity = 8;
  // The usual order. Calls begin and come back as soon as they can, and
  // operations are submitted once there is nothing to read; or, the other way
  // round, all is submitted and read before anybody begins.
  bool hears_first = false;
  // Leaves of the tree say that they wait, so that they are counted as here.
  bool leaves_wait = true;
  // Process sets that exist from the beginning; ids are 1, 2, ...
  std::vector<std::vector<int>> process_sets = {};
  // What all ranks have run before, in this order.
  std::vector<negotiation::Request> run_before = {};
  uint64_t max_idle_uses = 32768;  // as Negotiator::Options
  // By rank.
  std::vector<std::vector<negotiation::Request>> programs;
  // Rules that are broken on purpose. Ranks begin to block although what they
  // told of the gate is still with them;
  bool blocks_with_backlog = false;
  // or although they have not relayed the news of an earlier gate.
  bool blocks_before_relaying = false;
};

struct Action {
  enum Kind {
    kFinish,  // a call of the data plane comes back
    kBegin,   // carries the next decision out, or begins to
    kRead,    // takes what is in the ring from `other`
    kPush,    // fills the ring to `other`
    kNotice,  // learns that `other` has died
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

// Explores depth first what can happen. In each state there is one action that
// is the usual next one; an order of events is as far away as the number of
// times that it takes another one. All orders up to `max_deviations` away are
// covered; two orders after which every rank has seen the same, in the same
// order, are one (they differ in what was independent), and are explored once.
// A fault may come at any time. Once time passes, things happen in the usual
// order.
class Explorer {
 public:
  Explorer(const Scenario& scenario, int max_deviations,
           std::optional<Action> fault = std::nullopt)
      : scenario_(scenario), max_deviations_(max_deviations), fault_(fault) {}

  // Returns the first order of events with a bad end, as text; empty if there
  // is none: nobody waits for ever, nobody does something else than the others,
  // and everybody ends.
  std::string Run();

  int64_t paths() const { return paths_; }
  size_t states() const { return explored_.size(); }

 private:
  struct Choice {
    size_t taken = 0;
    size_t available = 0;
    int deviations = 0;  // before it
    bool last_is_fault = false;
  };

  // A fault costs nothing.
  static bool Deviates(const Choice& choice, size_t taken) {
    return taken > 0 &&
           !(choice.last_is_fault && taken + 1 == choice.available);
  }
  std::string RunPath(std::vector<Choice>& path);
  // The next one in depth-first order; false if there is none.
  bool NextPath(std::vector<Choice>& path) const;

  const Scenario scenario_;
  const int max_deviations_;
  const std::optional<Action> fault_;
  std::unordered_map<uint64_t, int> explored_;  // deviations that were left
  int64_t paths_ = 0;
};

}  // namespace hvdlite::testing
