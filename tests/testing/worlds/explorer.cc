#include "tests/testing/worlds/explorer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::testing {
namespace {

using negotiation::Request;

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr int kWatchdogTicks = 5;
// The number of ticks after which all ranks must have ended if nothing else
// happens.
constexpr int kPatienceTicks = 40;

SimWorld::Options WorldOf(const Scenario& scenario) {
  SimWorld::Options options = {
      .ring_cells = 4,
      .blocks_with_backlog = scenario.blocks_with_backlog,
      .speaks_at_once = false};
  options.negotiator.tree_arity = scenario.tree_arity;
  options.negotiator.max_idle_uses = scenario.max_idle_uses;
  options.negotiator.heartbeat = {.interval = kTick, .timeout = 3 * kTick};
  options.negotiator.stall_warning = absl::InfiniteDuration();
  options.negotiator.blocks_before_relaying = scenario.blocks_before_relaying;
  return options;
}

// One order of events.
class Course {
 public:
  explicit Course(const Scenario& scenario);

  // The actions that are possible now, in their usual order; the fault is last,
  // until it has happened.
  std::vector<Action> Enabled(std::optional<Action> fault) const;
  void Do(const Action& action);
  // Time passes, because nothing else can happen. The watchdog ends ranks that
  // have been inside a call for too long.
  void Tick();
  int ticks() const { return ticks_; }
  bool AllEnded() const {
    return absl::c_none_of(ranks_,
                           [](const Rank& rank) { return rank.runs(); });
  }
  // Call this when all ranks have ended.
  void ExpectGoodEnd() const;

  // Equal numbers mean that all ranks have seen the same events in the same
  // order.
  uint64_t Fingerprint() const {
    uint64_t all = 0;
    for (const Rank& rank : ranks_) all = Mix(all, rank.history);
    return all;
  }
  std::string Describe() const;

 private:
  struct Rank {
    size_t submitted = 0;          // operations of its program
    std::optional<uint64_t> call;  // the decision whose call it is in
    int ticks_in_call = 0;
    std::set<uint64_t> called;  // all calls that it has been in
    bool left = false;
    bool shut_down = false;
    bool ended = false;   // by shutdown, the world's end or its watchdog
    bool failed = false;  // crashed or stopped
    std::string reason;
    std::set<int> noticed;
    uint64_t history = 0;

    bool runs() const { return !failed && !ended; }
    bool serves() const { return runs() && !call.has_value(); }
  };

  int size() const { return world_.size(); }
  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  const std::vector<Request>& Program(int rank) const {
    return programs_[static_cast<size_t>(rank)];
  }
  static uint64_t Mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ (hash >> 29);
  }
  void Note(int rank, int64_t what) {
    at(rank).history = Mix(at(rank).history, static_cast<uint64_t>(what) + 7);
  }

  void RunEverywhere(const Request& request);
  void Begin(int rank);
  // Like after a barrier: if a rank leaves earlier, the others fail.
  bool AllDone() const;
  bool IsNeighbour(int rank, int other) const {
    return scenario_.host_of_rank[static_cast<size_t>(rank)] ==
               scenario_.host_of_rank[static_cast<size_t>(other)] ||
           world_.HasLink({rank, other}) || world_.HasLink({other, rank});
  }
  std::vector<int> MembersOf(const SimWorld::Decision& decision) const;
  bool AllInCall(uint64_t number) const {
    return absl::c_all_of(members_of_call_.at(number), [&](int rank) {
      return at(rank).called.contains(number);
    });
  }

  const Scenario& scenario_;
  SimWorld world_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Request>> programs_;
  std::map<uint64_t, std::vector<int>> members_of_call_;
  std::set<int> dead_;
  int ticks_ = 0;
};

Course::Course(const Scenario& scenario)
    : scenario_(scenario),
      world_(scenario.host_of_rank, WorldOf(scenario)),
      ranks_(scenario.host_of_rank.size()),
      programs_(ranks_.size()) {
  for (int rank = 0; rank < size(); ++rank) {
    world_[rank].set_waits(scenario.leaves_wait
                               ? negotiation::Negotiator::Waits::kLonger
                               : negotiation::Negotiator::Waits::kNot);
  }
  for (const std::vector<int>& members : scenario.process_sets) {
    RunEverywhere(
        AddSet(members, absl::StrCat("set.", members.front(), members.back())));
  }
  for (const Request& request : scenario.run_before) RunEverywhere(request);
  for (int rank = 0; rank < size(); ++rank) {
    if (!world_.IsIdle(rank)) {
      throw SimWorld::Violation("an operation of run_before has not ended");
    }
    at(rank).left = false;
    at(rank).history = 0;
  }
  programs_ = scenario.programs;
}

std::vector<Action> Course::Enabled(std::optional<Action> fault) const {
  std::vector<Action> enabled;
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    if (!state.runs()) continue;
    if (state.call.has_value()) {
      if (AllInCall(*state.call)) enabled.push_back({Action::kFinish, rank});
      continue;
    }
    if (world_.MayBegin(rank)) enabled.push_back({Action::kBegin, rank});
  }
  for (const SimWorld::Link& link : world_.BusyLinks()) {
    const auto [from, to] = link;
    if (at(to).serves() && world_.CanRead(link)) {
      enabled.push_back({Action::kRead, to, from});
    }
    // Messages sent before the end of the world are still delivered.
    const Rank& sender = at(from);
    const bool pushes = sender.serves() || sender.ended;
    if (!sender.failed && pushes && world_.CanPush(link)) {
      enabled.push_back({Action::kPush, from, to});
    }
  }
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    if (!state.serves()) continue;
    for (const int dead : dead_) {
      if (!state.noticed.contains(dead) && IsNeighbour(rank, dead) &&
          !world_.CanRead({dead, rank})) {
        enabled.push_back({Action::kNotice, rank, dead});
      }
    }
    if (state.submitted < Program(rank).size()) {
      enabled.push_back({Action::kSubmit, rank});
    } else if (!state.left && AllDone()) {
      enabled.push_back({Action::kLeave, rank});
    }
  }
  if (scenario_.hears_first) std::reverse(enabled.begin(), enabled.end());
  if (fault.has_value() && at(fault->rank).runs()) enabled.push_back(*fault);
  return enabled;
}

void Course::Do(const Action& action) {
  const auto [kind, rank, other] = action;
  Rank& state = at(rank);
  Note(rank, kind * 64 + other);
  switch (kind) {
    case Action::kFinish:
      state.call.reset();
      world_.Finish(rank);
      break;
    case Action::kBegin:
      Begin(rank);
      break;
    case Action::kRead:
      Note(rank, world_.Read({other, rank}));
      break;
    case Action::kPush:
      Note(rank, world_.Push({rank, other}));
      break;
    case Action::kNotice:
      state.noticed.insert(other);
      world_[rank].Abort(absl::StrCat("rank ", other, " has died"));
      break;
    case Action::kSubmit:
      world_.Submit(rank, Program(rank)[state.submitted++]);
      if (state.submitted == Program(rank).size()) world_.WaitForAll(rank);
      break;
    case Action::kLeave:
      state.left = true;
      world_.Leave(rank, "its program is over");
      break;
    case Action::kCrash:
      dead_.insert(rank);
      [[fallthrough]];
    case Action::kStop:
      state.failed = true;
      break;
  }
  if (state.serves()) world_.Serve(rank);
}

void Course::Tick() {
  world_.PassUnnoticed(kTick);
  ++ticks_;
  for (int rank = 0; rank < size(); ++rank) {
    Rank& state = at(rank);
    if (!state.runs()) continue;
    Note(rank, 1000);
    if (!state.call.has_value()) {
      world_.Serve(rank);
    } else if (++state.ticks_in_call > kWatchdogTicks) {
      state.ended = true;
      dead_.insert(rank);
    }
  }
}

void Course::ExpectGoodEnd() const {
  for (int rank = 0; rank < size(); ++rank) {
    if (at(rank).shut_down && world_.IsIdle(rank)) continue;
    throw SimWorld::Violation(
        absl::StrCat("rank ", rank, " did not end well: ", at(rank).reason));
  }
}

std::string Course::Describe() const {
  std::string text;
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    absl::StrAppend(
        &text, "rank ", rank,
        state.failed  ? " has failed"
        : state.ended ? absl::StrCat(" has ended: ", state.reason)
        : state.call.has_value()
            ? absl::StrCat(" is in the call of decision ", *state.call)
        : world_.IsIdle(rank) ? " waits, with nothing pending"
                              : " waits",
        "\n");
  }
  return text;
}

void Course::RunEverywhere(const Request& request) {
  for (int rank = 0; rank < size(); ++rank) {
    world_.SubmitUrgently(rank, request);
    at(rank).left = true;  // it must not leave yet: more follows
    world_.Serve(rank);
  }
  for (;;) {
    const std::vector<Action> enabled = Enabled(std::nullopt);
    if (enabled.empty()) break;
    Do(enabled.front());
  }
}

bool Course::AllDone() const {
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    if (state.runs() &&
        (!world_.IsIdle(rank) || state.submitted < Program(rank).size())) {
      return false;
    }
  }
  return true;
}

void Course::Begin(int rank) {
  using Kind = SimWorld::Decision::Kind;
  Rank& state = at(rank);
  const auto decision = world_.Begin(rank);
  if (!decision.has_value()) {
    throw SimWorld::Violation("a rank could begin, but then failed to");
  }
  if (decision->kind == Kind::kShutdown || decision->kind == Kind::kBroken) {
    state.ended = true;
    state.shut_down = decision->kind == Kind::kShutdown;
    state.reason = state.shut_down ? "shutdown" : decision->message;
  }
  if (!decision->has_gate || state.ended) return;
  members_of_call_.try_emplace(decision->number, MembersOf(*decision));
  state.call = decision->number;
  state.called.insert(decision->number);
  state.ticks_in_call = 0;
}

std::vector<int> Course::MembersOf(const SimWorld::Decision& decision) const {
  if (decision.kind == SimWorld::Decision::Kind::kAddProcessSet) {
    return decision.members;
  }
  if (decision.process_set > 0) {
    return scenario_.process_sets[decision.process_set - 1];
  }
  std::vector<int> all(ranks_.size());
  absl::c_iota(all, 0);
  return all;
}

std::string Describe(const Action& action) {
  static constexpr const char* kNames[] = {"finishes its call",
                                           "begins",
                                           "reads from",
                                           "pushes to",
                                           "notices the death of",
                                           "submits",
                                           "leaves",
                                           "dies",
                                           "is stopped"};
  return absl::StrCat("  rank ", action.rank, " ", kNames[action.kind],
                      action.other < 0 ? "" : absl::StrCat(" ", action.other),
                      "\n");
}

}  // namespace

std::string Explorer::Run() {
  // The choices on the explored path, and how many there were.
  std::vector<Choice> path;
  do {
    std::string violation = RunPath(path);
    if (!violation.empty()) return violation;
  } while (NextPath(path));
  return "";
}

std::string Explorer::RunPath(std::vector<Choice>& path) {
  ++paths_;
  Course course(scenario_);
  std::string done;
  try {
    int deviations = 0;
    size_t depth = 0;
    while (!course.AllEnded()) {
      const std::vector<Action> enabled = course.Enabled(fault_);
      const bool last_is_fault =
          fault_.has_value() && !enabled.empty() && enabled.back() == *fault_;
      if (enabled.empty() || (last_is_fault && enabled.size() == 1)) {
        if (course.ticks() > kPatienceTicks) {
          throw SimWorld::Violation("not all ranks end");
        }
        course.Tick();
        continue;
      }
      if (course.ticks() > 0) {  // no fault can follow any more
        course.Do(enabled.front());
        continue;
      }
      if (depth == path.size()) {
        // This is a new state: was it explored with at least as many deviations
        // left?
        const int left = max_deviations_ - deviations;
        const auto [seen, first] =
            explored_.try_emplace(course.Fingerprint(), left);
        if (!first && seen->second >= left) return "";
        seen->second = left;
        path.push_back({0, enabled.size(), deviations, last_is_fault});
      }
      const Choice& choice = path[depth++];
      if (Deviates(choice, choice.taken)) ++deviations;
      absl::StrAppend(&done, Describe(enabled[choice.taken]));
      course.Do(enabled[choice.taken]);
    }
    if (!fault_.has_value()) course.ExpectGoodEnd();
  } catch (const SimWorld::Violation& violation) {
    return absl::StrCat(violation.what(), " after\n", done, course.Describe());
  }
  return "";
}

bool Explorer::NextPath(std::vector<Choice>& path) const {
  while (!path.empty()) {
    Choice& last = path.back();
    while (++last.taken < last.available) {
      if (!Deviates(last, last.taken) || last.deviations < max_deviations_) {
        return true;
      }
    }
    path.pop_back();
  }
  return false;
}

}  // namespace hvdlite::testing
