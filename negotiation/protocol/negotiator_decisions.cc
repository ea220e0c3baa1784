// The Negotiator's decisions, on their way from the root down the tree.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {

bool Negotiator::Plan() {
  ComeToGate();
  if (planned_) return touched_;
  if (is_root() && !abort_reason_.has_value()) {
    const bool idle = queue_.idle();
    for (wire::Decision& decision : decision_maker_.Next(idle)) {
      Decide(std::move(decision));
    }
    const std::vector<uint32_t> forgotten = decision_maker_.TakeForgotten();
    if (!forgotten.empty()) {
      wire::Decision decision;
      decision.set_allocated_forgotten(new wire::Forgotten);
      AppendIds(forgotten, decision.mutable_forgotten()->mutable_ids());
      Decide(std::move(decision));
    }
    ComeToGate();
  }
  planned_ = true;
  return touched_;
}

void Negotiator::ComeToGate() {
  const DecisionQueue::Arrival arrival = queue_.ComeToGate(now_ns_);
  if (arrival == DecisionQueue::Arrival::kNone) return;
  Touch();
  if (arrival == DecisionQueue::Arrival::kTooLate) {
    Abort(absl::StrCat("it has no memory left to take part in '",
                       queue_.next()->name, "'"));
  }
}

std::optional<Decision> Negotiator::NextDecision(uint64_t delivered) {
  std::optional<Decision> decision = queue_.Begin(delivered);
  // The root may be idle now: OnDone() is not called for this decision.
  if (decision.has_value() && !decision->has_gate) Touch();
  return decision;
}

void Negotiator::Decide(wire::Decision decision) {
  Touch();
  decision.set_number(last_decision_ + 1);
  wire::Decision& told = *directive_.add_decisions();
  told = std::move(decision);
  const absl::Status status = Apply(told);
  if (!status.ok()) BreakWorld(std::string(status.message()));
}

absl::Status Negotiator::Apply(const wire::Decision& message) {
  // The sender of an abort may not know its number (AbortMessages).
  if (message.number() != last_decision_ + 1 &&
      message.kind_case() != wire::Decision::kBroken) {
    return ProtocolError(absl::StrCat("decision ", message.number(),
                                      " came after decision ", last_decision_));
  }
  Decision decision;
  decision.number = ++last_decision_;
  switch (message.kind_case()) {
    case wire::Decision::kBucket:
      return ApplyBucket(message.bucket(), std::move(decision));
    case wire::Decision::kFailure:
      return ApplyFailure(message.failure(), std::move(decision));
    case wire::Decision::kAdded:
      return ApplyAdded(message.added(), std::move(decision));
    case wire::Decision::kRemoved:
      return ApplyRemoved(message.removed(), std::move(decision));
    case wire::Decision::kDeparture:
      return ApplyDeparture(message.departure(), std::move(decision));
    case wire::Decision::kForgotten:
      return ApplyForgotten(message.forgotten());
    case wire::Decision::kAllJoined:
      decision.kind = Decision::Kind::kAllJoined;
      decision.last_joined = message.all_joined();
      decision.token = std::exchange(join_token_, std::nullopt);
      membership_.EndJoin();
      break;
    case wire::Decision::kBroken:
      decision.kind = Decision::Kind::kBroken;
      decision.message = message.broken();
      abort_reason_ = message.broken();
      queue_.Abandon();
      AbandonPending();
      break;
    case wire::Decision::kShutdown:
      decision.kind = Decision::Kind::kShutdown;
      decision.name = "shutdown()";
      queue_.OpenGate(decision);
      break;
    case wire::Decision::KIND_NOT_SET:
      return ProtocolError("a decision of an unknown kind");
  }
  queue_.Push(std::move(decision));
  return absl::OkStatus();
}

absl::Status Negotiator::Register(
    const google::protobuf::RepeatedPtrField<wire::Registration>& registered) {
  for (const wire::Registration& registration : registered) {
    auto request = FromWire(registration.request());
    if (!request.ok()) return request.status();
    if (!table_.Accepts(registration.id())) {
      return ProtocolError(
          absl::StrCat("tensor id ", registration.id(), " is not free"));
    }
    table_.Register(registration.id(), *std::move(request));
  }
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyBucket(const wire::Bucket& bucket,
                                     Decision decision) {
  if (!membership_.exists(bucket.process_set())) {
    return ProtocolError("a bucket of a process set that does not exist");
  }
  decision.kind = Decision::Kind::kBucket;
  decision.process_set = bucket.process_set();
  const int members = membership_.size(bucket.process_set());
  if (bucket.joined() >= static_cast<uint32_t>(members)) {
    return ProtocolError("a bucket without participants");
  }
  decision.participants = members - static_cast<int>(bucket.joined());
  if (absl::Status status = Register(bucket.registered()); !status.ok()) {
    return status;
  }
  if (absl::Status status = Register(bucket.absent_registered());
      !status.ok()) {
    return status;
  }

  // Ranks outside of the set know its operations only if they passed them on.
  // Ranks that have joined know them by the request.
  const bool member = membership_.IsMember(bucket.process_set(), options_.rank);
  const bool joined = membership_.has_joined(options_.rank);
  bool known = true;
  bool counts_waiting_leaves = true;
  ValueReader last_ranks(bucket.last_ranks());
  ValueReader lateness(bucket.lateness_us());
  const auto append = [&](TensorSlot* slot, const Request* request) {
    Decision::Tensor tensor;
    uint64_t value = 0;
    if (last_ranks.Next(&value)) tensor.last_rank = static_cast<int>(value);
    // The value is in bounds, also as nanoseconds, whatever a message contains.
    if (lateness.Next(&value)) {
      tensor.lateness_us =
          static_cast<int64_t>(std::min(value, uint64_t{1} << 50));
    }
    if (request != nullptr) {
      if (decision.name.empty()) decision.name = request->name;
      counts_waiting_leaves =
          counts_waiting_leaves && request->traits().counts_waiting_leaves;
      if (member && joined) {
        tensor.request = std::make_shared<Request>(*request);
      }
    }
    if (slot != nullptr) {
      if (decision.name.empty()) decision.name = slot->name;
      tensor.token = EndInstance(*slot);
    }
    if (!member) return;
    known = known && (tensor.token.has_value() || tensor.request != nullptr);
    decision.tensors.push_back(std::move(tensor));
  };
  const auto append_absent = [&](TensorSlot* slot) {
    if (slot == nullptr) {
      known = known && (!member || joined);
      return;
    }
    const std::optional<Token> token = EndInstance(*slot);
    if (token.has_value()) decision.absent.push_back(*token);
  };
  const auto append_registered = [&](const Registration& registration) {
    if (registration.slot == nullptr) return false;  // forgotten
    append(registration.slot, &registration.request);
    return true;
  };
  const auto append_absent_registered = [&](const Registration& registration) {
    if (registration.slot == nullptr) return false;
    append_absent(registration.slot);
    return true;
  };
  known = VisitKnownIds(bucket.ids(), append_registered) && known;
  for (const auto& registration : bucket.registered()) {
    append_registered(*table_.FindById(registration.id()));
  }
  for (const std::string& name : bucket.names()) {
    append(table_.Find(name), nullptr);
  }
  for (const wire::Request& described : bucket.requests()) {
    const auto request = FromWire(described);
    if (!request.ok()) return request.status();
    append(table_.Find(request->name), &*request);
  }
  known = VisitKnownIds(bucket.absent_ids(), append_absent_registered) && known;
  for (const std::string& name : bucket.absent_names()) {
    append_absent(table_.Find(name));
  }
  for (const auto& registration : bucket.absent_registered()) {
    append_absent_registered(*table_.FindById(registration.id()));
  }
  if (!known) {
    return ProtocolError("a bucket with a tensor that is not pending");
  }
  // A rank that waits inside a node's reduction learns of the world's end
  // there.
  queue_.OpenGate(decision, counts_waiting_leaves);
  if (member) queue_.Push(std::move(decision));
  JoinIfIdle();
  return absl::OkStatus();
}

std::optional<Token> Negotiator::EndInstance(TensorSlot& slot) {
  const std::optional<Token> token = slot.token;
  if (token.has_value()) --pending_;
  if (slot.urgent) awaited_.erase(&slot);
  table_.EndInstance(slot);
  return token;
}

std::optional<Token> Negotiator::EndInstance(const std::string& name) {
  TensorSlot* slot = table_.Find(name);
  if (slot == nullptr) return std::nullopt;
  return EndInstance(*slot);
}

absl::Status Negotiator::ApplyFailure(const wire::Failure& failure,
                                      Decision decision) {
  decision.kind = Decision::Kind::kFailure;
  decision.message = failure.message();
  decision.next_step = failure.next_step();
  const std::optional<Token> token = EndInstance(failure.name());
  if (token.has_value()) {
    decision.failed = {*token};
    queue_.Push(std::move(decision));
  }
  JoinIfIdle();
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyAdded(const wire::AddedProcessSet& added,
                                    Decision decision) {
  if (membership_.exists(added.process_set())) {
    return ProtocolError("a process set that exists already");
  }
  // On every rank, its request listed the members like this.
  const int size = options_.layout->world_size();
  if (added.members().empty() || added.members(0) < 0 ||
      *added.members().rbegin() >= size ||
      absl::c_adjacent_find(added.members(), std::greater_equal<>()) !=
          added.members().end()) {
    return ProtocolError("a process set whose members are not ascending ranks");
  }
  decision.kind = Decision::Kind::kAddProcessSet;
  decision.process_set = added.process_set();
  decision.members.assign(added.members().begin(), added.members().end());
  decision.name = added.name();
  decision.token = EndInstance(added.name());
  membership_.Add(added.process_set(), decision.members);
  queue_.OpenGate(decision);
  queue_.Push(std::move(decision));
  JoinIfIdle();
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyRemoved(const wire::RemovedProcessSet& removed,
                                      Decision decision) {
  if (!membership_.exists(removed.process_set()) ||
      removed.process_set() == 0) {
    return ProtocolError("the end of a process set that does not exist");
  }
  decision.kind = Decision::Kind::kRemoveProcessSet;
  decision.process_set = removed.process_set();
  decision.message = DescribeRemoved(removed.process_set());
  for (TensorSlot* slot : table_.All()) {
    if (slot->process_set != removed.process_set()) continue;
    const std::optional<Token> token = EndInstance(*slot);
    if (token.has_value()) decision.failed.push_back(*token);
  }
  if (absl::Status status = Forget(table_.IdsOf(removed.process_set()));
      !status.ok()) {
    return status;
  }
  queue_.OpenGate(decision);
  membership_.Remove(removed.process_set());
  decision.name = removed.name();
  decision.token = EndInstance(removed.name());
  queue_.Push(std::move(decision));
  JoinIfIdle();
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyDeparture(const wire::Departure& departure,
                                        Decision decision) {
  if (departure.rank() < 0 ||
      departure.rank() >= options_.layout->world_size()) {
    return ProtocolError("a departure of a rank that does not exist");
  }
  decision.kind = Decision::Kind::kDeparture;
  decision.message = absl::StrCat(options_.layout->NameOf(departure.rank()),
                                  " has left the world: ", departure.reason());
  AbandonPending();
  queue_.Push(std::move(decision));
  return absl::OkStatus();
}

void Negotiator::JoinIfIdle() {
  if (!join_token_.has_value() || pending_ > 0 || abandoned_ ||
      membership_.has_joined(options_.rank)) {
    return;
  }
  OnJoined(options_.rank);
}

void Negotiator::AbandonPending() {
  abandoned_ = true;
  for (TensorSlot* slot : table_.All()) slot->token.reset();
  pending_ = 0;
  join_token_.reset();
}

// ---- The end of the world.

void Negotiator::Abort(const std::string& reason) {
  Touch();
  EndSubtree(absl::StrCat(options_.layout->NameOf(options_.rank),
                          " cannot continue: ", reason));
}

std::vector<Negotiator::Outgoing> Negotiator::AbortMessages(
    const std::string& reason) const {
  std::vector<Outgoing> messages;
  if (!is_root()) {
    Outgoing& to_parent = messages.emplace_back();
    to_parent.to = tree_.parent;
    to_parent.message.set_allocated_report(new wire::Report);
    to_parent.message.mutable_report()->set_broken(reason);
  }
  for (const TreePosition::Child& child : tree_.children) {
    Outgoing& to_child = messages.emplace_back();
    to_child.to = child.rank;
    to_child.message.set_allocated_directive(new wire::Directive);
    to_child.message.mutable_directive()->add_decisions()->set_broken(reason);
  }
  return messages;
}

void Negotiator::EndSubtree(const std::string& reason) {
  BreakWorld(reason);
  if (is_root() || std::exchange(cut_off_, true)) return;
  wire::Decision decision;
  decision.set_broken(reason);
  Decide(std::move(decision));
}

void Negotiator::BreakWorld(const std::string& reason) {
  if (!is_root()) {
    report_.rest().set_broken(reason);
  } else if (!std::exchange(broken_, true)) {
    wire::Decision decision;
    decision.set_broken(reason);
    Decide(std::move(decision));
  }
}

}  // namespace hvdlite::negotiation
