#include "tests/testing/worlds/sim_world.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/negotiation_requests.h"

namespace hvdlite::testing {
namespace {

std::vector<int> HostsOf(const WorldShape& shape) {
  std::vector<int> hosts;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    hosts.push_back(rank / shape.ranks_per_host);
  }
  return hosts;
}

SimWorld::Options WithArity(negotiation::Negotiator::Options options,
                            int arity) {
  options.tree_arity = arity;
  return {.negotiator = std::move(options)};
}

}  // namespace

std::string NameOf(const WorldShape& shape) {
  return absl::StrCat(shape.ranks, "Ranks", shape.ranks_per_host,
                      "PerHostArity", shape.arity);
}

SimWorld::SimWorld(const WorldShape& shape,
                   negotiation::Negotiator::Options options)
    : SimWorld(HostsOf(shape), WithArity(std::move(options), shape.arity)) {}

SimWorld::SimWorld(std::vector<int> host_of_rank, Options options)
    : options_(std::move(options)), ranks_(host_of_rank.size()) {
  std::vector<std::string> names;
  for (const int host : host_of_rank)
    names.push_back(absl::StrCat("host", host));
  negotiation::Negotiator::Options negotiator = options_.negotiator;
  negotiator.layout =
      std::make_shared<negotiation::WorldLayout>(host_of_rank, names);
  for (int rank = 0; rank < size(); ++rank) {
    negotiator.rank = rank;
    negotiator.at_gate = [this, rank](const Decision& decision) {
      return at_gate ? at_gate(rank, decision) : std::optional<uint32_t>(0);
    };
    at(rank).negotiator = std::make_unique<negotiation::Negotiator>(negotiator);
    at(rank).negotiator->Advance(now_ns_);
  }
}

// ---- Calls of programs.

void SimWorld::Submit(int rank, const Request& request, bool absent,
                      uint32_t step) {
  const negotiation::Token token = next_token_++;
  at(rank).pending[token] = request.name;
  at(rank).negotiator->Submit(request, absent, token, /*hint=*/nullptr,
                              /*submitted_ns=*/std::nullopt, step);
  Touched(rank);
}

void SimWorld::SubmitEverywhere(const Request& request) {
  for (int rank = 0; rank < size(); ++rank) Submit(rank, request);
}

void SimWorld::MarkUrgent(int rank, const std::string& name) {
  at(rank).negotiator->MarkUrgent(name);
  Touched(rank);
}

void SimWorld::WaitForAll(int rank) {
  for (const auto& [token, name] : at(rank).pending) {
    at(rank).negotiator->MarkUrgent(name);
  }
  Touched(rank);
}

void SimWorld::Run(const Request& request, std::vector<int> ranks) {
  if (ranks.empty()) {
    ranks.resize(ranks_.size());
    absl::c_iota(ranks, 0);
  }
  for (const int rank : ranks) SubmitUrgently(rank, request);
  Settle();
  for (const int rank : ranks) {
    if (!IsPending(rank, request.name)) continue;
    throw Violation(absl::StrCat(request.name, " does not end on rank ", rank));
  }
}

void SimWorld::RunShuffled(std::vector<Submission> submissions,
                           std::mt19937& random,
                           const std::function<void()>& also) {
  const auto move = [&] {
    for (uint32_t left = random() % 4; left > 0; --left) Step(random);
    if (also) also();
  };
  std::shuffle(submissions.begin(), submissions.end(), random);
  for (const Submission& one : submissions) {
    Submit(one.rank, one.request, one.absent, one.step);
    if (one.waits && random() % 2 == 0) MarkUrgent(one.rank, one.request.name);
    move();
  }
  for (const Submission& one : submissions) {
    if (!one.waits || !IsPending(one.rank, one.request.name)) continue;
    MarkUrgent(one.rank, one.request.name);
    move();
  }
  Settle(random);
  for (int rank = 0; rank < size(); ++rank) {
    if (IsIdle(rank)) continue;
    throw Violation(absl::StrCat(at(rank).pending.begin()->second,
                                 " does not end on rank ", rank));
  }
}

SimWorld::ProcessSetId SimWorld::AddProcessSet(std::vector<int> members) {
  Run(AddSet(std::move(members), absl::StrCat("add.", sets_++)));
  return done(0).back().process_set;
}

void SimWorld::SubmitRemoval(ProcessSetId set, const std::string& name) {
  Request request;
  request.name = name;
  request.collective = negotiation::Collective::kRemoveProcessSet;
  request.removed = set;
  SubmitEverywhere(request);
}

void SimWorld::Join(int rank) {
  Request request;
  request.name = "join";
  request.collective = negotiation::Collective::kJoin;
  Submit(rank, request);
}

bool SimWorld::IsPending(int rank, const std::string& name) const {
  return absl::c_any_of(at(rank).pending,
                        [&](const auto& one) { return one.second == name; });
}

// ---- Messages.

void SimWorld::Speak(int rank) {
  negotiation::Negotiator& negotiator = *at(rank).negotiator;
  negotiator.Explain(
      [&] { return explain ? explain(rank) : std::nullopt; },
      [&](int other) { return look_at ? look_at(other) : std::nullopt; });
  for (const auto& outgoing : negotiator.TakeOutgoing()) {
    if (outgoing.to < 0 || outgoing.to >= size()) {
      throw Violation(absl::StrCat("a message to rank ", outgoing.to));
    }
    std::string bytes = outgoing.message.SerializeAsString();
    const auto length = static_cast<int64_t>(bytes.size());
    bytes_sent += length;
    if (on_send) on_send(bytes);
    Ring& ring = links_[{rank, outgoing.to}];
    ring.produced += (length + kCellBytes - 1) / kCellBytes;
    ring.messages.push_back({ring.produced, ++at(rank).sent, std::move(bytes)});
    Push({rank, outgoing.to});
  }
  for (std::string& warning : negotiator.TakeWarnings()) {
    warnings.push_back(std::move(warning));
  }
}

void SimWorld::Serve(int rank) {
  at(rank).negotiator->Advance(now_ns_);
  at(rank).negotiator->Plan();
  Speak(rank);
}

std::vector<SimWorld::Link> SimWorld::BusyLinks() const {
  std::vector<Link> busy;
  for (const auto& [link, ring] : links_) {
    if (!ring.messages.empty() && !at(link.second).stopped) {
      busy.push_back(link);
    }
  }
  return busy;
}

std::string SimWorld::PopFront(Ring& ring) {
  ring.read = std::max(ring.read, ring.messages.front().last_cell);
  std::string bytes = std::move(ring.messages.front().bytes);
  ring.messages.pop_front();
  return bytes;
}

void SimWorld::Deliver(Link link) { Deliver(link, PopFront(links_[link])); }

void SimWorld::Deliver(Link link, const std::string& bytes) {
  const auto [from, to] = link;
  negotiation::wire::Message message;
  std::string refused;
  if (!message.ParseFromString(bytes)) {
    refused = "unreadable message";
  } else if (const absl::Status status =
                 at(to).negotiator->OnMessage(from, message);
             !status.ok()) {
    refused = std::string(status.message());
    if (refused.empty()) throw Violation("a refusal without a reason");
  } else if (on_delivered) {
    on_delivered(to, message);
  }
  if (!refused.empty()) {
    if (!on_refused) throw Violation(refused);
    on_refused(to, refused);
  }
  Touched(to);
}

bool SimWorld::CanPush(Link link) const {
  const Ring& ring = links_.at(link);
  return ring.written < ring.produced &&
         ring.written - ring.read < options_.ring_cells;
}

int64_t SimWorld::Push(Link link) {
  Ring& ring = links_[link];
  ring.written = std::min(ring.produced, ring.read + options_.ring_cells);
  return ring.written;
}

bool SimWorld::CanRead(Link link) const {
  const auto found = links_.find(link);
  return found != links_.end() && found->second.written > found->second.read;
}

int64_t SimWorld::Read(Link link) {
  Ring& ring = links_[link];
  ring.read = ring.written;
  while (!ring.messages.empty() &&
         ring.messages.front().last_cell <= ring.read) {
    Deliver(link);
  }
  return ring.read;
}

uint64_t SimWorld::Delivered(int rank) const {
  uint64_t delivered = at(rank).sent;
  if (options_.blocks_with_backlog) return delivered;
  for (auto link = links_.lower_bound({rank, 0});
       link != links_.end() && link->first.first == rank; ++link) {
    const Ring& ring = link->second;
    if (ring.written == ring.produced) continue;
    for (const Message& message : ring.messages) {
      if (message.last_cell <= ring.written) continue;
      delivered = std::min(delivered, message.number - 1);
      break;
    }
  }
  return delivered;
}

// ---- Decisions.

bool SimWorld::MayBegin(int rank) const {
  return at(rank).negotiator->CanBegin(Delivered(rank));
}

std::optional<SimWorld::Decision> SimWorld::Begin(int rank) {
  Rank& self = at(rank);
  if (options_.speaks_at_once) {
    self.negotiator->Plan();
    Speak(rank);
  }
  std::optional<Decision> decision =
      self.negotiator->NextDecision(Delivered(rank));
  if (!decision.has_value()) return decision;
  Done done{.kind = decision->kind,
            .number = decision->number,
            .tensors = {},
            .absent = {},
            .message = decision->message,
            .participants = decision->participants,
            .last_joined = decision->last_joined,
            .last_ranks = {},
            .lateness_us = {},
            .next_step = decision->next_step,
            .process_set = decision->process_set};
  const auto ends = [&](negotiation::Token token) {
    const auto found = self.pending.find(token);
    if (found == self.pending.end() ||
        absl::c_linear_search(self.ending, token)) {
      throw Violation(absl::StrCat("an operation ends twice on rank ", rank));
    }
    self.ending.push_back(token);
    return found->second;
  };
  for (const Decision::Tensor& tensor : decision->tensors) {
    done.last_ranks.push_back(tensor.last_rank);
    done.lateness_us.push_back(tensor.lateness_us);
    if (!tensor.token.has_value() && tensor.request == nullptr) {
      throw Violation("no rank knows the operation of a bucket");
    }
    done.tensors.push_back(tensor.token.has_value()
                               ? ends(*tensor.token)
                               : absl::StrCat("(", tensor.request->name, ")"));
  }
  for (const auto token : decision->absent) done.absent.push_back(ends(token));
  for (const auto token : decision->failed) done.tensors.push_back(ends(token));
  if (decision->token.has_value())
    done.tensors.push_back(ends(*decision->token));
  for (const int member : decision->members) {
    if (member < 0 || member >= size()) throw Violation("an unknown member");
  }
  CheckBucket(*decision, done);
  const bool abandons = decision->kind == Decision::Kind::kDeparture ||
                        decision->kind == Decision::Kind::kBroken;
  if (abandons && done.message.empty())
    throw Violation("an end without reason");
  self.done.push_back(std::move(done));
  if (abandons) {
    self.ending.clear();
    self.pending.clear();
  }
  if (!decision->has_gate) {
    for (const auto token : std::exchange(self.ending, {})) {
      self.pending.erase(token);
    }
  }
  return decision;
}

void SimWorld::CheckBucket(const Decision& decision, const Done& done) {
  if (decision.kind != Decision::Kind::kBucket || on_refused) return;
  std::string names = absl::StrJoin(done.tensors, ", ");
  absl::StrReplaceAll({{"(", ""}, {")", ""}}, &names);
  const auto [first, is_first] = buckets_.try_emplace(decision.number, names);
  if (is_first || first->second == names) return;
  throw Violation(absl::StrCat("decision ", decision.number, " is ", names,
                               " on a rank, and ", first->second,
                               " on another"));
}

void SimWorld::Finish(int rank) {
  Rank& self = at(rank);
  for (const auto token : std::exchange(self.ending, {})) {
    self.pending.erase(token);
  }
  self.negotiator->OnDone();
}

bool SimWorld::CarryOut(int rank) {
  if (at(rank).stopped) return false;
  const std::optional<Decision> decision = Begin(rank);
  if (!decision.has_value()) return false;
  if (decision->has_gate) Finish(rank);
  return true;
}

bool SimWorld::BeginAfterAll(int rank) {
  for (int round = 0; round < 4; ++round) {
    for (int other = 0; other < size(); ++other) {
      at(other).negotiator->Plan();
      Speak(other);
    }
    DeliverAll();
  }
  return Begin(rank).has_value();
}

void SimWorld::ForgetDone() {
  for (Rank& rank : ranks_) rank.done.clear();
  buckets_.clear();
}

// ---- Schedulers.

bool SimWorld::Step(std::mt19937& random) {
  std::vector<Link> links = BusyLinks();
  // Ranks with a decision to carry out are tried in random order, as often as
  // messages are delivered.
  const size_t choice = random() % (links.size() + 1);
  if (choice < links.size()) {
    Deliver(links[choice]);
    return true;
  }
  const int first = static_cast<int>(random() % ranks_.size());
  for (int i = 0; i < size(); ++i) {
    if (CarryOut((first + i) % size())) return true;
  }
  links = BusyLinks();  // the root may have made new decisions
  if (links.empty()) return false;
  Deliver(links[random() % links.size()]);
  return true;
}

void SimWorld::Settle(std::mt19937& random) {
  for (int steps = 0; Step(random); ++steps) {
    if (steps == 10'000'000) throw Violation("the world does not settle");
  }
}

void SimWorld::Settle() {
  bool moved = true;
  for (int rounds = 0; moved; ++rounds) {
    if (rounds == 1'000'000) throw Violation("the world does not settle");
    moved = false;
    for (int rank = 0; rank < size(); ++rank) {
      while (CarryOut(rank)) moved = true;
    }
    if (!BusyLinks().empty()) moved = true;
    DeliverAll();
  }
}

bool SimWorld::DeliverOneOfEachLink() {
  bool any = false;
  for (auto& [link, ring] : links_) {
    if (ring.messages.empty() || at(link.second).stopped) continue;
    Deliver(link, PopFront(ring));
    any = true;
  }
  return any;
}

void SimWorld::DeliverAll() {
  while (DeliverOneOfEachLink()) {
  }
}

// ---- Time.

void SimWorld::Advance(absl::Duration by) {
  PassUnnoticed(by);
  for (int rank = 0; rank < size(); ++rank) {
    if (at(rank).stopped) continue;
    at(rank).negotiator->Advance(now_ns_);
    Touched(rank);
  }
}

void SimWorld::AdvanceBySteps(absl::Duration by, absl::Duration step) {
  for (absl::Duration done; done < by; done += step) {
    Advance(step);
    Settle();
  }
}

}  // namespace hvdlite::testing
