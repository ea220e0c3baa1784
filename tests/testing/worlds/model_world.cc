#include "tests/testing/worlds/model_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::testing {

ModelWorld::ModelWorld(const Options& options)
    : options_(options), ranks_(static_cast<size_t>(options.size)) {
  std::vector<std::string> names;
  for (const int host : options.host_of_rank) {
    names.push_back(absl::StrCat("host", host));
  }
  negotiation::Negotiator::Options negotiator;
  negotiator.layout =
      std::make_shared<negotiation::WorldLayout>(options.host_of_rank, names);
  negotiator.tree_arity = options.tree_arity;
  negotiator.max_idle_uses = options.max_idle_uses;
  negotiator.heartbeat = {.interval = kTick, .timeout = 3 * kTick};
  negotiator.stall_warning = absl::InfiniteDuration();  // says nothing new
  negotiator.blocks_before_relaying = options.blocks_before_relaying;
  for (int rank = 0; rank < options.size; ++rank) {
    negotiator.rank = rank;
    Rank& state = ranks_[static_cast<size_t>(rank)];
    state.negotiator = std::make_unique<negotiation::Negotiator>(negotiator);
    state.negotiator->set_waits(options.leaves_wait
                                    ? negotiation::Negotiator::Waits::kLonger
                                    : negotiation::Negotiator::Waits::kNot);
    state.negotiator->Advance(now_ns_);
  }
  Prepare();
}

std::vector<ModelWorld::Action> ModelWorld::Enabled(
    std::optional<Action> fault) const {
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
  if (fault.has_value() && !at(fault->rank).failed && !at(fault->rank).ended) {
    enabled.push_back(*fault);
  }
  return enabled;
}

void ModelWorld::Do(const Action& action) {
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
      state.negotiator->Abort(absl::StrCat("rank ", action.other, " has died"));
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

void ModelWorld::Tick() {
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

void ModelWorld::CheckEnd(bool with_fault) {
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    if (state.failed) continue;
    if (!with_fault && (!state.shut_down || !state.pending.empty())) {
      Violate(absl::StrCat("rank ", rank, " did not end well: ", state.reason));
    }
  }
}

uint64_t ModelWorld::Fingerprint() const {
  uint64_t all = 0;
  for (const Rank& rank : ranks_) all = Mix(all, rank.history);
  return all;
}

std::string ModelWorld::Describe(const Action& action) const {
  static constexpr const char* kNames[] = {"finishes its call",
                                           "begins",
                                           "reads from",
                                           "pushes to",
                                           "notices the death of",
                                           "submits",
                                           "leaves",
                                           "dies",
                                           "is stopped"};
  return absl::StrCat("rank ", action.rank, " ", kNames[action.kind],
                      action.other < 0 ? "" : absl::StrCat(" ", action.other));
}

std::string ModelWorld::DescribeState() const {
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

void ModelWorld::RunEverywhere(const negotiation::Request& request) {
  for (int rank = 0; rank < size(); ++rank) {
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

void ModelWorld::Prepare() {
  const std::vector<std::vector<negotiation::Request>> programs =
      std::move(options_.programs);
  options_.programs.assign(ranks_.size(), {});
  for (const std::vector<int>& members : options_.process_sets) {
    negotiation::Request request;
    request.name = absl::StrCat("set.", members.front(), members.back());
    request.collective = negotiation::Collective::kAddProcessSet;
    request.members = members;
    RunEverywhere(request);
  }
  for (const negotiation::Request& request : options_.run_before) {
    RunEverywhere(request);
  }
  for (Rank& rank : ranks_) {
    if (!rank.pending.empty()) Violate("what is run before has not ended");
    rank.left = false;
    rank.history = 0;
  }
  options_.programs = programs;
}

bool ModelWorld::AllDone() const {
  for (int rank = 0; rank < size(); ++rank) {
    const Rank& state = at(rank);
    if (state.runs() &&
        (!state.pending.empty() || state.submitted < Program(rank).size())) {
      return false;
    }
  }
  return true;
}

bool ModelWorld::IsNeighbour(int rank, int other) const {
  return options_.host_of_rank[static_cast<size_t>(rank)] ==
             options_.host_of_rank[static_cast<size_t>(other)] ||
         links_.contains({rank, other}) || links_.contains({other, rank});
}

uint64_t ModelWorld::Delivered(int rank) const {
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

void ModelWorld::Submit(int rank, const negotiation::Request& request) {
  Rank& state = at(rank);
  const negotiation::Token token = next_token_[rank]++;
  state.pending[token] = request.name;
  state.negotiator->Submit(request, /*absent=*/false, token);
}

void ModelWorld::Serve(int rank) {
  negotiation::Negotiator& negotiator = *at(rank).negotiator;
  negotiator.Advance(now_ns_);
  negotiator.Plan();
  for (auto& outgoing : negotiator.TakeOutgoing()) {
    std::string bytes = outgoing.message.SerializeAsString();
    Link& link = links_[{rank, outgoing.to}];
    const int64_t size = static_cast<int64_t>(bytes.size());
    link.produced += (size + kCellBytes - 1) / kCellBytes;
    link.messages.push_back({link.produced, ++at(rank).sent, std::move(bytes)});
    Fill(link);
  }
}

void ModelWorld::Begin(int rank) {
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
  const auto [known, first] = contents_.try_emplace(decision->number, content);
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

std::vector<int> ModelWorld::MembersOf(
    const negotiation::Decision& decision) const {
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

bool ModelWorld::AllInCall(uint64_t number) const {
  const std::vector<int>& members = members_of_call_.at(number);
  return std::all_of(members.begin(), members.end(), [&](int rank) {
    return at(rank).called.contains(number);
  });
}

void ModelWorld::Finish(int rank) {
  Rank& state = at(rank);
  state.call.reset();
  for (const auto token : std::exchange(state.in_call, {})) {
    state.pending.erase(token);
  }
  state.negotiator->OnDone();
}

void ModelWorld::Read(int from, int to) {
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

}  // namespace hvdlite::testing
