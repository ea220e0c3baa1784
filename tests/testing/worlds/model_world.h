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

  explicit ModelWorld(const Options& options)
      : options_(options), ranks_(static_cast<size_t>(options.size)) {
    std::vector<std::string> names;
    for (const int host : options.host_of_rank) {
      names.push_back(absl::StrCat("host", host));
    }
    negotiation::Negotiator::Options negotiator;
    negotiator.layout =
        std::make_shared<negotiation::WorldLayout>(options.host_of_rank, names);
    negotiator.tree_arity = options.tree_arity;
    negotiator.heartbeat = {.interval = kTick, .timeout = 3 * kTick};
    negotiator.stall_warning = absl::InfiniteDuration();  // says nothing new
    for (int rank = 0; rank < options.size; ++rank) {
      negotiator.rank = rank;
      Rank& state = ranks_[static_cast<size_t>(rank)];
      state.negotiator =
          options.blocks_before_relaying
              ? std::make_unique<BlocksBeforeRelaying>(negotiator)
              : std::make_unique<negotiation::Negotiator>(negotiator);
      state.negotiator->set_waits(options.leaves_wait);
      state.negotiator->Advance(now_ns_);
    }
    MakeProcessSets();
  }

  // What can happen now, in an order in which it usually would. A fault is
  // last, and happens once at most.
  std::vector<Action> Enabled(std::optional<Action> fault) const {
    std::vector<Action> enabled;
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& state = at(rank);
      if (!state.runs()) continue;
      if (state.call.has_value()) {
        if (AllInCall(*state.call)) enabled.push_back({Action::kFinish, rank});
        continue;
      }
      if (MayBegin(rank)) enabled.push_back({Action::kBegin, rank});
    }
    for (const auto& [key, link] : links_) {
      const auto [from, to] = key;
      if (at(to).serves() && link.written > link.read) {
        enabled.push_back({Action::kRead, to, from});
      }
      // What has been sent before the end of the world goes out.
      const Rank& sender = at(from);
      const bool pushes = sender.serves() || sender.ended;
      if (!sender.failed && pushes && link.written < link.produced &&
          link.written - link.read < options_.ring_cells) {
        enabled.push_back({Action::kPush, from, to});
      }
    }
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& state = at(rank);
      if (!state.serves()) continue;
      for (const int dead : dead_) {
        if (!state.noticed.contains(dead) && IsNeighbour(rank, dead) &&
            !HasUnread(dead, rank)) {
          enabled.push_back({Action::kNotice, rank, dead});
        }
      }
      if (state.submitted < Program(rank).size()) {
        enabled.push_back({Action::kSubmit, rank});
      } else if (!state.left && AllDone()) {
        enabled.push_back({Action::kLeave, rank});
      }
    }
    if (options_.hears_first) std::reverse(enabled.begin(), enabled.end());
    if (fault.has_value() && !at(fault->rank).failed &&
        !at(fault->rank).ended) {
      enabled.push_back(*fault);
    }
    return enabled;
  }

  void Do(const Action& action) {
    Rank& state = at(action.rank);
    Note(action.rank, action.kind * 64 + action.other);
    switch (action.kind) {
      case Action::kFinish:
        Finish(action.rank);
        break;
      case Action::kBegin:
        Begin(action.rank);
        break;
      case Action::kRead:
        Read(action.other, action.rank);
        break;
      case Action::kPush:
        Fill(links_[{action.rank, action.other}]);
        Note(action.rank,
             static_cast<int>(links_[{action.rank, action.other}].written));
        break;
      case Action::kNotice:
        state.noticed.insert(action.other);
        state.negotiator->GiveUp(
            absl::StrCat("rank ", action.other, " has died"));
        break;
      case Action::kSubmit:
        Submit(action.rank, Program(action.rank)[state.submitted++]);
        if (state.submitted == Program(action.rank).size()) {
          for (const auto& [token, name] : state.pending) {
            state.negotiator->MarkUrgent(name);
          }
        }
        break;
      case Action::kLeave:
        state.left = true;
        state.negotiator->Leave("its program is over");
        break;
      case Action::kCrash:
        state.failed = true;
        dead_.insert(action.rank);
        break;
      case Action::kStop:
        state.failed = true;
        break;
    }
    if (state.serves()) Serve(action.rank);
  }

  // Nothing else can happen: time passes. Whoever is inside a call for too long
  // is ended by its watchdog.
  void Tick() {
    now_ns_ += absl::ToInt64Nanoseconds(kTick);
    ++ticks_;
    for (int rank = 0; rank < size(); ++rank) {
      Rank& state = at(rank);
      if (!state.runs()) continue;
      Note(rank, 1000);
      if (state.call.has_value()) {
        if (++state.ticks_in_call > kWatchdogTicks) {
          state.ended = true;
          dead_.insert(rank);
        }
        continue;
      }
      Serve(rank);
    }
  }

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
  void CheckEnd(bool with_fault) {
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& state = at(rank);
      if (state.failed) continue;
      if (!with_fault && (!state.shut_down || !state.pending.empty())) {
        Violate(
            absl::StrCat("rank ", rank, " did not end well: ", state.reason));
      }
    }
  }

  // Equal numbers: everybody has seen the same, in the same order.
  uint64_t Fingerprint() const {
    uint64_t all = 0;
    for (const Rank& rank : ranks_) all = Mix(all, rank.history);
    return all;
  }

  std::string Describe(const Action& action) const {
    static constexpr const char* kNames[] = {"finishes its call",
                                             "begins",
                                             "reads from",
                                             "pushes to",
                                             "notices the death of",
                                             "submits",
                                             "leaves",
                                             "dies",
                                             "is stopped"};
    return absl::StrCat(
        "rank ", action.rank, " ", kNames[action.kind],
        action.other < 0 ? "" : absl::StrCat(" ", action.other));
  }
  std::string DescribeState() const {
    std::string text;
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& state = at(rank);
      absl::StrAppend(
          &text, "rank ", rank,
          state.failed  ? " has failed"
          : state.ended ? absl::StrCat(" has ended: ", state.reason)
          : state.call.has_value()
              ? absl::StrCat(" is in the call of decision ", *state.call)
              : absl::StrCat(" waits, ", state.pending.size(), " pending"),
          "\n");
    }
    return text;
  }

 private:
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr int kWatchdogTicks = 5;
  static constexpr int64_t kCellBytes = 56;

  class BlocksBeforeRelaying : public negotiation::Negotiator {
   public:
    using Negotiator::Negotiator;

   private:
    bool MayBlock(uint64_t) const override { return true; }
  };

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

  // Everybody asks for them, in the usual order of things.
  void MakeProcessSets() {
    const std::vector<std::vector<negotiation::Request>> programs =
        std::move(options_.programs);
    options_.programs.assign(ranks_.size(), {});
    for (const std::vector<int>& members : options_.process_sets) {
      for (int rank = 0; rank < size(); ++rank) {
        negotiation::Request request;
        request.name = absl::StrCat("set.", members.front(), members.back());
        request.collective = negotiation::Collective::kAddProcessSet;
        request.members = members;
        Submit(rank, request);
        at(rank).negotiator->MarkUrgent(request.name);
        at(rank).left = true;  // not yet: there is more to come
        Serve(rank);
      }
      for (;;) {
        const std::vector<Action> enabled = Enabled(std::nullopt);
        if (enabled.empty()) break;
        Do(enabled.front());
      }
    }
    for (Rank& rank : ranks_) {
      if (!rank.pending.empty()) Violate("a process set was not made");
      rank.left = false;
      rank.history = 0;
    }
    options_.programs = programs;
  }

  // As after a barrier: who leaves before has the others fail.
  bool AllDone() const {
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& state = at(rank);
      if (state.runs() &&
          (!state.pending.empty() || state.submitted < Program(rank).size())) {
        return false;
      }
    }
    return true;
  }

  bool IsNeighbour(int rank, int other) const {
    return options_.host_of_rank[static_cast<size_t>(rank)] ==
               options_.host_of_rank[static_cast<size_t>(other)] ||
           links_.contains({rank, other}) || links_.contains({other, rank});
  }
  bool HasUnread(int from, int to) const {
    const auto link = links_.find({from, to});
    return link != links_.end() && link->second.written > link->second.read;
  }

  // As ControlChannel::delivered().
  uint64_t Delivered(int rank) const {
    uint64_t delivered = at(rank).sent;
    if (options_.blocks_with_backlog) return delivered;
    for (const auto& [key, link] : links_) {
      if (key.first != rank) continue;
      for (const Message& message : link.messages) {
        if (message.last_cell <= link.written) continue;
        delivered = std::min(delivered, message.number - 1);
        break;
      }
    }
    return delivered;
  }

  bool MayBegin(int rank) const {
    return at(rank).negotiator->CanBegin(Delivered(rank));
  }

  void Submit(int rank, const negotiation::Request& request) {
    Rank& state = at(rank);
    const negotiation::Token token = next_token_[rank]++;
    state.pending[token] = request.name;
    state.negotiator->Submit(request, /*absent=*/false, token);
  }

  // What a coordinator does whenever it has looked at its messages.
  void Serve(int rank) {
    negotiation::Negotiator& negotiator = *at(rank).negotiator;
    negotiator.Advance(now_ns_);
    negotiator.Plan();
    negotiator.ComeToGate();
    for (auto& outgoing : negotiator.TakeOutgoing()) {
      std::string bytes = outgoing.message.SerializeAsString();
      Link& link = links_[{rank, outgoing.to}];
      const int64_t size = static_cast<int64_t>(bytes.size());
      link.produced += (size + kCellBytes - 1) / kCellBytes;
      link.messages.push_back(
          {link.produced, ++at(rank).sent, std::move(bytes)});
      Fill(link);
    }
  }

  void Begin(int rank) {
    using Kind = negotiation::Decision::Kind;
    Rank& state = at(rank);
    const std::optional<negotiation::Decision> decision =
        state.negotiator->NextDecision(Delivered(rank));
    if (!decision.has_value()) {
      Violate(absl::StrCat("rank ", rank, " could begin, and then could not"));
      return;
    }
    std::string content;
    std::vector<negotiation::Token> ends = decision->absent;
    for (const auto& tensor : decision->tensors) {
      if (!tensor.token.has_value()) continue;
      absl::StrAppend(&content, at(rank).pending[*tensor.token], ",");
      ends.push_back(*tensor.token);
    }
    ends.insert(ends.end(), decision->failed.begin(), decision->failed.end());
    if (decision->token.has_value()) ends.push_back(*decision->token);
    switch (decision->kind) {
      case Kind::kShutdown:
        state.shut_down = state.ended = true;
        state.reason = "shutdown";
        return;
      case Kind::kBroken:
        state.ended = true;
        state.reason = decision->message;
        return;
      case Kind::kDeparture:
        state.pending.clear();
        return;
      default:
        break;
    }
    if (!decision->has_gate) {
      for (const auto token : ends) state.pending.erase(token);
      return;
    }
    // Everybody in the call is there for the same.
    const auto [known, first] =
        contents_.try_emplace(decision->number, content);
    if (!first && known->second != content) {
      Violate(absl::StrCat("decision ", decision->number, " is ", content,
                           " on rank ", rank, ", and ", known->second,
                           " on another"));
    }
    members_of_call_.try_emplace(decision->number, MembersOf(*decision));
    state.call = decision->number;
    state.called.insert(decision->number);
    state.in_call = std::move(ends);
    state.ticks_in_call = 0;
  }

  std::vector<int> MembersOf(const negotiation::Decision& decision) const {
    if (decision.kind == negotiation::Decision::Kind::kAddProcessSet) {
      return decision.members;
    }
    if (decision.process_set > 0) {
      return options_.process_sets[decision.process_set - 1];
    }
    std::vector<int> all;
    for (int rank = 0; rank < size(); ++rank) all.push_back(rank);
    return all;
  }

  bool AllInCall(uint64_t number) const {
    const std::vector<int>& members = members_of_call_.at(number);
    return std::all_of(members.begin(), members.end(), [&](int rank) {
      return at(rank).called.contains(number);
    });
  }

  void Finish(int rank) {
    Rank& state = at(rank);
    state.call.reset();
    for (const auto token : std::exchange(state.in_call, {})) {
      state.pending.erase(token);
    }
    state.negotiator->OnDone();
  }

  void Read(int from, int to) {
    Link& link = links_[{from, to}];
    link.read = link.written;
    Note(to, static_cast<int>(link.read));
    while (!link.messages.empty() &&
           link.messages.front().last_cell <= link.read) {
      negotiation::wire::Message message;
      if (!message.ParseFromString(link.messages.front().bytes)) {
        Violate("a message cannot be read");
      }
      Note(to, static_cast<int>(link.messages.front().last_cell % 50) + 2000);
      link.messages.pop_front();
      const absl::Status status = at(to).negotiator->OnMessage(from, message);
      if (!status.ok()) Violate(std::string(status.message()));
    }
  }

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
