#include "negotiation/protocol/negotiator.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

// Whether the source takes part in the slot's instance, and has not arrived.
bool Expects(const Membership& membership, int source, const TensorSlot& slot) {
  return !slot.has_arrived(source) &&
         ((membership.SourcesOf(slot.process_set) >> source) & 1) != 0;
}

}  // namespace

Negotiator::Negotiator(const Options& options)
    : options_(options),
      tree_(PlaceInTree(options.rank, options.tree_arity, *options.layout)),
      membership_(options.rank, options.layout->world_size(), tree_),
      forgotten_below_(tree_.children.size()),
      queue_({.rank = options.rank,
              .at_gate = options.at_gate,
              .blocks_before_relaying = options.blocks_before_relaying},
             tree_, membership_),
      report_(options.min_batch_bytes),
      decision_maker_(membership_, options.fusion_threshold_bytes,
                      options.min_batch_bytes, options.max_idle_uses),
      liveness_(
          {.rank = options.rank,
           .layout = options.layout,
           .stall_warning = options.stall_warning,
           .stall_failure = options.stall_failure,
           .heartbeat = options.heartbeat,
           .explains = options.explains,
           .pids = options.pids},
          {.tree = tree_,
           .membership = membership_,
           .table = table_,
           .queue = queue_,
           .to_parent = report_,
           .to_children = directive_,
           .decision_maker = decision_maker_,
           .end_world = [this](const std::string& reason, bool is_cut_off) {
             is_cut_off ? EndSubtree(reason) : BreakWorld(reason);
             return over();
           }}) {}

// ---- Time, and questions of others.

void Negotiator::Advance(int64_t now_ns) {
  now_ns_ = now_ns;
  if (liveness_.Advance(situation(), now_ns)) Touch();
}

void Negotiator::Explain(
    absl::FunctionRef<std::optional<Explanation>()> self,
    absl::FunctionRef<std::optional<ProcessSample>(int rank)> look) {
  if (liveness_.Explain(self, look, waits_ != Waits::kNot)) Touch();
}

void Negotiator::AskEverybody() {
  Touch();
  liveness_.AskEverybody(situation());
}

void Negotiator::Leave(const std::string& reason) {
  Touch();
  liveness_.Leave(reason);
}

RankRuns Negotiator::RanksOf(int source, ProcessSetId process_set) const {
  if (source == kSelf) return RankRuns({options_.rank});
  return membership_.Remaining(process_set, tree_.children[source - 1].subtree);
}

int Negotiator::SourceOf(int rank) const {
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    if (tree_.children[i].rank == rank) return static_cast<int>(i) + 1;
  }
  return -1;
}

// ---- Readiness, on its way up.

void Negotiator::Submit(const Request& request, bool absent, Token token,
                        SlotHint* hint, std::optional<int64_t> submitted_ns,
                        uint32_t step) {
  Touch();
  if (abandoned_) return;  // a decision that fails it is on its way
  if (request.collective == Collective::kJoin) {
    join_token_ = token;
    join_submitted_ns_ = submitted_ns.value_or(now_ns_);
    // The join waits for pending operations, even if no thread waits for them.
    for (TensorSlot* slot : table_.All()) {
      if (slot->token.has_value()) Urgent(*slot);
    }
    JoinIfIdle();
    return;
  }
  if (!membership_.IsMember(request.process_set, options_.rank)) {
    // The set was removed between the operation's submission and now.
    Decision decision;
    decision.kind = Decision::Kind::kFailure;
    decision.number = last_decision_;
    decision.failed = {token};
    decision.message = DescribeRemoved(request.process_set);
    queue_.Push(std::move(decision));
    return;
  }
  const Registration* known =
      hint == nullptr ? nullptr : table_.FindByHint(*hint);
  TensorSlot& slot =
      known != nullptr ? *known->slot : table_.FindOrInsert(request.name);
  if (known == nullptr) known = slot.Find(request);
  slot.process_set = request.process_set;
  slot.token = token;
  slot.submitted_ns = submitted_ns.value_or(now_ns_);
  ++pending_;
  liveness_.OnSubmit(slot);
  if (known != nullptr) {
    AddById(slot, *known, kSelf, step);
    if (hint != nullptr) *hint = {known->id, known->version};
  } else {
    AddVariant(slot, request, step, RankRuns({options_.rank}));
  }
  Arrive(slot, kSelf, !absent, {options_.rank, slot.submitted_ns});
}

void Negotiator::AddVariant(TensorSlot& slot, const Request& request,
                            uint32_t step, const RankRuns& ranks) {
  for (Variant& variant : slot.variants) {
    if (variant.step != step || variant.request != request) continue;
    variant.ranks.Add(ranks);
    return;
  }
  slot.variants.push_back({request, ranks, step});
}

void Negotiator::Arrive(TensorSlot& slot, int source, bool present,
                        const Last& last) {
  const bool first = slot.arrived == 0;
  if (first || last.submitted_ns < slot.first_ns) {
    slot.first_ns = last.submitted_ns;
  }
  if (first || last.submitted_ns >= slot.last_ns) {
    slot.last_ns = last.submitted_ns;
    slot.last_rank = last.rank;
  }
  slot.present = slot.present || present;
  slot.arrived |= uint64_t{1} << source;
  PassOnIfReady(slot);
}

void Negotiator::PassOnIfReady(TensorSlot& slot) {
  const uint64_t awaited = membership_.SourcesOf(slot.process_set);
  if (slot.reported || slot.arrived == 0 ||
      (slot.arrived & awaited) != awaited) {
    return;
  }
  // Not all agree with the registered request.
  if (!slot.variants.empty()) DescribeById(slot);
  slot.reported = true;
  if (slot.urgent) awaited_.erase(&slot);
  if (is_root()) {
    for (wire::Decision& decision : decision_maker_.OnReady(slot)) {
      Decide(std::move(decision));
    }
  } else {
    report_.AddReady(slot, now_ns_);
  }
}

void Negotiator::MarkUrgent(const std::string& name) {
  Touch();
  TensorSlot* slot = table_.Find(name);
  if (slot != nullptr && slot->token.has_value()) Urgent(*slot);
}

void Negotiator::Urgent(TensorSlot& slot) {
  if (is_root() && slot.reported) {
    decision_maker_.MarkUrgent(slot);
    return;
  }
  if (slot.urgent) return;
  slot.urgent = true;
  if (!slot.reported) {
    awaited_.insert(&slot);
    return;  // goes along with the report
  }
  report_.AddUrgent(slot);
}

void Negotiator::OnJoined(int rank) {
  if (abandoned_) return;  // no decision about it will follow
  const bool last_of_source = membership_.Join(rank);
  if (!is_root()) {
    report_.rest().add_joined(rank);
  } else if (membership_.everyone_joined()) {
    wire::Decision decision;
    decision.set_all_joined(rank);
    Decide(std::move(decision));
    return;
  }
  if (!last_of_source) return;
  // Slots that waited only for this rank are ready now. Passing one on may end
  // others.
  std::vector<std::string> names;
  for (const TensorSlot* slot : table_.All()) names.push_back(slot->name);
  for (const std::string& name : names) {
    if (TensorSlot* slot = table_.Find(name)) PassOnIfReady(*slot);
  }
}

// ---- Messages.

absl::Status Negotiator::OnMessage(int from, const wire::Message& message) {
  Touch();
  if (cut_off_) return absl::OkStatus();
  const int source = SourceOf(from);
  if (source < 0 && from != tree_.parent) {
    return ProtocolError(
        absl::StrCat("an unexpected message from rank ", from));
  }
  liveness_.OnMessage(from, message);
  if (message.has_directive()) {
    if (from != tree_.parent) {
      return ProtocolError(absl::StrCat("a directive from rank ", from,
                                        ", which is not this rank's parent"));
    }
    if (absl::Status status = OnDirective(message.directive()); !status.ok()) {
      return status;
    }
  } else if (message.has_report() && source >= 0) {
    if (absl::Status status = OnReport(source, message.report());
        !status.ok()) {
      return status;
    }
  } else if (message.has_report() ||
             (!message.ping() && !message.pong() && message.gates().empty())) {
    return ProtocolError(
        absl::StrCat("an unexpected message from rank ", from));
  }
  // The decisions that the gates belong to have arrived before.
  return queue_.OnMessage(from, message);
}

bool Negotiator::WillComeAtOnce() const {
  const bool one_node = options_.layout->leaders().size() == 1;
  return (waits_ != Waits::kNot || one_node) && tree_.children.empty() &&
         queue_.idle() && !membership_.has_joined(options_.rank);
}

absl::Status Negotiator::OnReport(int source, const wire::Report& report) {
  queue_.OnReport(tree_.children[source - 1].rank,
                  report.waits_after() > 0
                      ? std::optional(report.waits_after() - 1)
                      : std::nullopt);
  // Joins come first: other parts of the report may be ready only because of
  // them.
  for (const int rank : report.joined()) {
    if (!tree_.children[source - 1].subtree.Contains(rank)) {
      return ProtocolError(
          absl::StrCat("rank ", rank, " has joined through another rank"));
    }
    OnJoined(rank);
  }
  if (absl::Status status = OnReady(source, report.ready(), true);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = OnReady(source, report.absent(), false);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = OnAnnounced(source, report); !status.ok()) {
    return status;
  }
  // An urgent mark may be late: the decision about its tensor is on the way
  // down. Then the sender has no part in the slot's current instance, if there
  // is one.
  const auto mark = [&](TensorSlot* slot) {
    if (slot != nullptr && slot->has_arrived(source)) Urgent(*slot);
  };
  const bool known =
      VisitKnownIds(report.urgent_ids(), [&](const Registration& marked) {
        mark(marked.slot != nullptr ? marked.slot
                                    : table_.Find(marked.request.name));
        return true;
      });
  if (!known) return ProtocolError("an urgent mark of an unknown tensor id");
  for (const std::string& name : report.urgent_names()) mark(table_.Find(name));
  if (!VisitKnownIds(report.released_ids(), [&](Registration& released) {
        Release(released);
        return true;
      })) {
    return ProtocolError("a release of an unknown tensor id");
  }
  // This comes after the last ids that the sender used before it knew.
  if (report.forgotten() > 0) {
    if (absl::Status status = OnForgotten(source, report.forgotten());
        !status.ok()) {
      return status;
    }
  }
  liveness_.OnReport(source, report, situation());
  return absl::OkStatus();
}

absl::Status Negotiator::OnReady(int source, const wire::Ready& ready,
                                 bool present) {
  const bool expected = VisitReady(ready, now_ns_, [&](const ReadyById& told) {
    Registration* const reported = table_.FindById(told.id);
    if (reported == nullptr) return false;
    const ProcessSetId set = reported->request.process_set;
    if (!membership_.exists(set)) return true;  // removed on the way
    TensorSlot& slot = reported->slot != nullptr
                           ? *reported->slot
                           : table_.FindOrInsert(reported->request.name);
    if (slot.arrived == 0) slot.process_set = set;
    if (slot.process_set != set || !Expects(membership_, source, slot)) {
      return false;
    }
    AddById(slot, *reported, source, told.step);
    Arrive(slot, source, present, {told.last_rank, told.last_ns});
    return true;
  });
  if (!expected) {
    return ProtocolError("a report of unexpected tensor ids");
  }
  return absl::OkStatus();
}

absl::Status Negotiator::OnAnnounced(int source, const wire::Report& report) {
  // Announcements of one tensor are adjacent.
  for (int i = 0; i < report.announced_size(); ++i) {
    const wire::Announcement& announced = report.announced(i);
    const auto request = FromWire(announced.request());
    if (!request.ok()) return request.status();
    // The set was removed on the way; the senders fail the operation
    // themselves.
    if (!membership_.exists(request->process_set)) continue;
    TensorSlot& slot = table_.FindOrInsert(request->name);
    if (slot.arrived == 0) slot.process_set = request->process_set;
    const RankRuns ranks =
        announced.has_ranks()
            ? FromWire(announced.ranks(), options_.layout->world_size())
            : RanksOf(source, request->process_set);
    if (!Expects(membership_, source, slot) ||
        slot.process_set != request->process_set || ranks.runs().empty() ||
        ranks.unnamed() > 0) {
      return ProtocolError(
          absl::StrCat("tensor '", request->name, "' was not expected"));
    }
    AddVariant(slot, *request, announced.step(), ranks);
    const bool last_of_tensor =
        i + 1 == report.announced_size() ||
        report.announced(i + 1).request().name() != request->name;
    if (last_of_tensor) {
      Arrive(slot, source, !announced.absent(),
             {announced.last_rank(), TimeOfAge(now_ns_, announced.age())});
    }
  }
  return absl::OkStatus();
}

absl::Status Negotiator::OnDirective(const wire::Directive& directive) {
  for (const wire::Decision& decision : directive.decisions()) {
    if (abort_reason_.has_value()) break;  // later decisions are ignored
    if (!tree_.children.empty()) *directive_.add_decisions() = decision;
    if (absl::Status status = Apply(decision); !status.ok()) return status;
  }
  if (directive.decisions_size() > 0) asked_ = false;
  if (directive.awaits_reports()) asked_ = true;
  if (directive.has_probe()) liveness_.OnProbe(directive.probe());
  return absl::OkStatus();
}

uint64_t Negotiator::AwaitedChildren() const {
  constexpr uint64_t kChildren = ~uint64_t{0} << kFirstChild;
  // The parent does not say which tensors are awaited.
  if (asked_) return kChildren;
  uint64_t missing = 0;
  for (const TensorSlot* slot : awaited_) {
    missing |= membership_.SourcesOf(slot->process_set) & ~slot->arrived;
  }
  return missing & kChildren;
}

std::vector<Negotiator::Outgoing> Negotiator::TakeOutgoing() {
  if (!std::exchange(touched_, false)) return {};
  std::vector<Outgoing> outgoing;
  const auto send = [&](int to, wire::Message message) {
    queue_.AddNews(to, message);
    const bool sends = message.kind_case() != wire::Message::KIND_NOT_SET ||
                       !message.gates().empty();
    Heartbeat::Signs signs = liveness_.TakeSigns(to, sends);
    if (queue_.shut_down()) signs = {};  // the others may be gone
    if (!sends && !signs.ping && !signs.pong) return;
    if (signs.ping) message.set_ping(true);
    if (signs.pong) message.set_pong(true);
    queue_.OnSend(message, ++handed_out_);
    outgoing.push_back({to, std::move(message)});
  };
  if (!is_root()) {
    wire::Message message;
    if (asked_ || report_.IsDue()) {
      wire::Report report = report_.Take(now_ns_);
      if (report.ByteSizeLong() > 0) {
        if (WillComeAtOnce()) report.set_waits_after(last_decision_ + 1);
        message.set_allocated_report(new wire::Report(std::move(report)));
      }
    }
    send(tree_.parent, std::move(message));
  }
  if (tree_.children.empty()) {
    directive_.Clear();
    return outgoing;
  }
  if (directive_.decisions_size() > 0) asked_children_ = 0;
  const uint64_t ask = asks() ? AwaitedChildren() & ~asked_children_ : 0;
  asked_children_ |= ask;
  wire::Message message;
  if (directive_.ByteSizeLong() > 0) {
    message.set_allocated_directive(
        new wire::Directive(std::exchange(directive_, {})));
  }
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    const bool last = i + 1 == tree_.children.size();
    wire::Message to_child = last ? std::move(message) : message;
    if ((ask >> (i + kFirstChild)) & 1) {
      if (!to_child.has_directive()) {
        to_child.set_allocated_directive(new wire::Directive);
      }
      to_child.mutable_directive()->set_awaits_reports(true);
    }
    send(tree_.children[i].rank, std::move(to_child));
  }
  return outgoing;
}

}  // namespace hvdlite::negotiation
