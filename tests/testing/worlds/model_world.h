// ModelWorld: a few ranks whose every step is somebody else's choice, for
// exploring all orders in which things can happen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

// Each rank is a real Negotiator, which meets, negotiates and watches over the
// others, and what the Coordinator does with it: it serves its messages, or it
// is inside a call of the data plane. Such a call comes back once all members
// are in it; meanwhile the rank neither receives nor sends. Messages travel
// through rings of a few cells: what does not fit stays with the sender, who
// has to come back to it.
//
// A rank's program is a list of operations, which it submits one by one; then
// it waits for all of them, and leaves once nobody has any left. Time passes
// only when nothing else can happen.
class ModelWorld {
 public:
  struct Options {
    int size = 3;
    std::vector<int> host_of_rank;
    int tree_arity = 8;
    int64_t ring_cells = 4;
    // The usual order. Calls begin and come back as soon as they can, and
    // operations are submitted once there is nothing to read; or, the other way
    // round, all is submitted and read before anybody begins.
    bool hears_first = false;
    // Leaves of the tree say that they wait, so that they are counted as here.
    bool leaves_wait = true;
    // Process sets that exist from the beginning; ids are 1, 2, ...
    std::vector<std::vector<int>> process_sets;
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

  explicit ModelWorld(const Options& options);

  // What can happen now, in an order in which it usually would. A fault is
  // last, and happens once at most.
  std::vector<Action> Enabled(std::optional<Action> fault) const;

  void Do(const Action& action);

  // Nothing else can happen: time passes. Whoever is inside a call for too long
  // is ended by its watchdog.
  void Tick();

  bool AllEnded() const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const Rank& rank) { return !rank.runs(); });
  }
  // Ticks after which everybody must have ended, if nothing else happens.
  static constexpr int kPatienceTicks = 40;
  int ticks() const { return ticks_; }

  // What is wrong, if anything.
  const std::string& violation() const { return violation_; }

  // To be called when all have ended: whether they ended as they should.
  void CheckEnd(bool with_fault);

  // Equal numbers: everybody has seen the same, in the same order.
  uint64_t Fingerprint() const;

  std::string Describe(const Action& action) const;
  std::string DescribeState() const;

 private:
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr int kWatchdogTicks = 5;
  static constexpr int64_t kCellBytes = 56;

  struct Rank {
    std::unique_ptr<negotiation::Negotiator> negotiator;
    size_t submitted = 0;  // of its program
    std::map<negotiation::Token, std::string> pending;
    std::optional<uint64_t> call;  // the decision whose call it is in
    int ticks_in_call = 0;
    std::vector<negotiation::Token> in_call;
    std::set<uint64_t> called;  // all calls it has been in
    bool left = false;
    bool shut_down = false;
    bool ended = false;   // by shutdown, the world's end or its watchdog
    bool failed = false;  // crashed or stopped
    std::string reason;
    std::set<int> noticed;
    uint64_t sent = 0;  // messages
    uint64_t history = 0;

    bool runs() const { return !failed && !ended; }
    bool serves() const { return runs() && !call.has_value(); }
  };

  struct Message {
    int64_t last_cell = 0;  // counted from the beginning of the link
    uint64_t number = 0;    // among those of its sender
    std::string bytes;
  };
  struct Link {
    int64_t produced = 0;
    int64_t written = 0;
    int64_t read = 0;
    std::deque<Message> messages;  // that have not been read
  };

  int size() const { return options_.size; }
  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  const std::vector<negotiation::Request>& Program(int rank) const {
    return options_.programs[static_cast<size_t>(rank)];
  }

  static uint64_t Mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 29);
  }
  void Note(int rank, int what) {
    at(rank).history = Mix(at(rank).history, static_cast<uint64_t>(what) + 7);
  }
  void Violate(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }

  // Process sets are made, and everybody runs what is run before, in the usual
  // order of things.
  void Prepare();
  void RunEverywhere(const negotiation::Request& request);

  // As after a barrier: who leaves before has the others fail.
  bool AllDone() const;

  bool IsNeighbour(int rank, int other) const;
  bool HasUnread(int from, int to) const {
    const auto link = links_.find({from, to});
    return link != links_.end() && link->second.written > link->second.read;
  }

  // As ControlChannel::delivered().
  uint64_t Delivered(int rank) const;

  bool MayBegin(int rank) const {
    return at(rank).negotiator->CanBegin(Delivered(rank));
  }

  void Submit(int rank, const negotiation::Request& request);

  // What a coordinator does whenever it has looked at its messages.
  void Serve(int rank);

  void Begin(int rank);

  std::vector<int> MembersOf(const negotiation::Decision& decision) const;

  bool AllInCall(uint64_t number) const;

  void Finish(int rank);

  void Read(int from, int to);

  // What the sender can put into the ring now.
  void Fill(Link& link) {
    link.written = std::min(link.produced, link.read + options_.ring_cells);
  }

  Options options_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Link> links_;
  std::map<int, negotiation::Token> next_token_;
  std::map<uint64_t, std::vector<int>> members_of_call_;
  std::map<uint64_t, std::string> contents_;  // of decisions with a gate
  std::set<int> dead_;
  int64_t now_ns_ = 1'000'000'000;
  int ticks_ = 0;
  std::string violation_;
};

}  // namespace hvdlite::testing
