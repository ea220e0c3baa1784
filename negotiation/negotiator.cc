#include "negotiation/negotiator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/request_wire.h"

namespace hvdlite::negotiation {
namespace {

constexpr int kSelf = 0;  // this rank, as a source; its children follow

absl::Status ProtocolError(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("negotiation: ", what,
                   "; all ranks must run the same version of hvdlite"));
}

}  // namespace

Negotiator::Negotiator(const Options& options)
    : options_(options),
      tree_(
          PlaceInTree(options.rank, options.tree_arity, options.host_of_rank)),
      all_sources_((uint64_t{2} << tree_.children.size()) - 1),
      stalls_({.rank = options.rank,
               .warning = options.stall_warning,
               .failure = options.stall_failure},
              tree_),
      decision_maker_(static_cast<int>(options.host_of_rank.size()),
                      options.fusion_threshold_bytes, options.min_batch_bytes) {
}

std::vector<int> Negotiator::RanksOf(int source) const {
  if (source == kSelf) return {options_.rank};
  return tree_.children[source - 1].subtree;
}

int Negotiator::SourceOf(int rank) const {
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    if (tree_.children[i].rank == rank) return static_cast<int>(i) + 1;
  }
  return -1;
}

// ---- Readiness, on its way up.

void Negotiator::Submit(const Request& request, bool absent, Token token) {
  if (abandoned_) return;  // a decision that fails it is on its way
  TensorSlot& slot = table_.FindOrInsert(request.name);
  slot.token = token;
  slot.submitted_ns = now_ns_;
  ++pending_;
  stalls_.OnSubmit(request.name, now_ns_);
  if (slot.id.has_value() && slot.request == request) {
    slot.arrived_by_id |= uint64_t{1} << kSelf;
  } else {
    AddVariant(slot, request, {options_.rank});
  }
  Arrive(slot, kSelf, !absent, options_.rank);
}

void Negotiator::AddVariant(TensorSlot& slot, const Request& request,
                            std::vector<int> ranks) {
  for (Variant& variant : slot.variants) {
    if (variant.request != request) continue;
    variant.ranks.insert(variant.ranks.end(), ranks.begin(), ranks.end());
    return;
  }
  slot.variants.push_back({request, std::move(ranks)});
}

void Negotiator::Arrive(TensorSlot& slot, int source, bool present,
                        int last_rank) {
  if (slot.arrived == 0) slot.first_ns = now_ns_;
  slot.last_ns = now_ns_;
  slot.last_rank = last_rank;
  slot.present = slot.present || present;
  slot.arrived |= uint64_t{1} << source;
  if (slot.arrived == all_sources_) SubtreeReady(slot);
}

void Negotiator::SubtreeReady(TensorSlot& slot) {
  if (!slot.variants.empty()) {
    // Not all agree with the registered request: those who do become a variant.
    for (int source = 0; slot.arrived_by_id >> source != 0; ++source) {
      if ((slot.arrived_by_id >> source) & 1) {
        AddVariant(slot, slot.request, RanksOf(source));
      }
    }
  }
  slot.reported = true;
  if (is_root()) {
    for (wire::Decision& decision : decision_maker_.OnReady(slot)) {
      Decide(std::move(decision));
    }
  } else {
    ReportReady(slot);
  }
}

void Negotiator::ReportReady(TensorSlot& slot) {
  if (slot.variants.empty()) {
    wire::Ready* ready =
        slot.present ? report_.mutable_ready() : report_.mutable_absent();
    ready->add_ids(*slot.id);
    ready->add_last_ranks(slot.last_rank);
    if (slot.urgent) report_.add_urgent_ids(*slot.id);
    return;
  }
  for (const Variant& variant : slot.variants) {
    wire::Announcement* announced = report_.add_announced();
    ToWire(variant.request, announced->mutable_request());
    announced->mutable_ranks()->Assign(variant.ranks.begin(),
                                       variant.ranks.end());
    announced->set_absent(!slot.present);
    announced->set_last_rank(slot.last_rank);
  }
  if (slot.urgent) report_.add_urgent_names(slot.name);
}

void Negotiator::MarkUrgent(const std::string& name) {
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
  if (!slot.reported) return;  // goes along with the report
  if (slot.variants.empty()) {
    report_.add_urgent_ids(*slot.id);
  } else {
    report_.add_urgent_names(slot.name);
  }
}

void Negotiator::Leave(const std::string& reason) {
  if (std::exchange(left_, true)) return;
  wire::Departure departure;
  departure.set_rank(options_.rank);
  departure.set_reason(reason);
  OnDeparture(departure);
}

void Negotiator::GiveUp(const std::string& reason) {
  BreakWorld(absl::StrCat("rank ", options_.rank, " (",
                          options_.host_names[options_.rank],
                          ") cannot go on: ", reason));
}

void Negotiator::BreakWorld(const std::string& reason) {
  if (!is_root()) {
    report_.set_broken(reason);
  } else if (!std::exchange(broken_, true)) {
    wire::Decision decision;
    decision.set_broken(reason);
    Decide(std::move(decision));
  }
}

void Negotiator::OnDeparture(const wire::Departure& departure) {
  if (is_root()) {
    decision_maker_.OnDeparture(departure);
  } else {
    *report_.add_departures() = departure;
  }
}

// ---- Messages.

absl::Status Negotiator::OnMessage(int from, const wire::Message& message) {
  if (message.has_directive()) {
    if (from != tree_.parent) {
      return ProtocolError(absl::StrCat("a directive from rank ", from,
                                        ", which is not this rank's parent"));
    }
    return OnDirective(message.directive());
  }
  const int source = SourceOf(from);
  if (source < 0 || !message.has_report()) {
    return ProtocolError(
        absl::StrCat("an unexpected message from rank ", from));
  }
  return OnReport(source, message.report());
}

absl::Status Negotiator::OnReport(int source, const wire::Report& report) {
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
  // A mark may be late: the decision about its tensor is on the way down. Then
  // the sender has no part in the instance that the slot holds now, if any.
  const auto mark = [&](TensorSlot* slot) {
    if (slot != nullptr && slot->has_arrived(source)) Urgent(*slot);
  };
  for (const uint32_t id : report.urgent_ids()) mark(table_.FindById(id));
  for (const std::string& name : report.urgent_names()) mark(table_.Find(name));
  for (const wire::Departure& departure : report.departures()) {
    OnDeparture(departure);
  }
  for (const wire::Stall& stall : report.stalls()) {
    if (is_root()) {
      stalls_.OnStall(stall, now_ns_);
    } else {
      *report_.add_stalls() = stall;
    }
  }
  if (report.inquiry() != 0) {
    stalls_.OnAnswer(tree_.children[source - 1].rank, report);
  }
  if (!report.broken().empty()) BreakWorld(report.broken());
  InspectStalls();
  return absl::OkStatus();
}

absl::Status Negotiator::OnReady(int source, const wire::Ready& ready,
                                 bool present) {
  if (ready.ids_size() != ready.last_ranks_size()) {
    return ProtocolError("a report whose lists differ in length");
  }
  for (int i = 0; i < ready.ids_size(); ++i) {
    TensorSlot* slot = table_.FindById(ready.ids(i));
    if (slot == nullptr || slot->has_arrived(source)) {
      return ProtocolError(
          absl::StrCat("tensor id ", ready.ids(i), " was not expected"));
    }
    slot->arrived_by_id |= uint64_t{1} << source;
    Arrive(*slot, source, present, ready.last_ranks(i));
  }
  return absl::OkStatus();
}

absl::Status Negotiator::OnAnnounced(int source, const wire::Report& report) {
  // Announcements of one tensor stand together.
  for (int i = 0; i < report.announced_size(); ++i) {
    const wire::Announcement& announced = report.announced(i);
    const auto request = FromWire(announced.request());
    if (!request.ok()) return request.status();
    TensorSlot& slot = table_.FindOrInsert(request->name);
    if (slot.has_arrived(source) || announced.ranks().empty()) {
      return ProtocolError(
          absl::StrCat("tensor '", request->name, "' was not expected"));
    }
    AddVariant(slot, *request,
               {announced.ranks().begin(), announced.ranks().end()});
    const bool last_of_tensor =
        i + 1 == report.announced_size() ||
        report.announced(i + 1).request().name() != request->name;
    if (last_of_tensor) {
      Arrive(slot, source, !announced.absent(), announced.last_rank());
    }
  }
  return absl::OkStatus();
}

absl::Status Negotiator::OnDirective(const wire::Directive& directive) {
  for (const wire::Decision& decision : directive.decisions()) {
    *directive_.add_decisions() = decision;
    if (absl::Status status = Apply(decision); !status.ok()) return status;
  }
  if (directive.has_inquiry()) OnInquiry(directive.inquiry());
  return absl::OkStatus();
}

std::vector<Negotiator::Outgoing> Negotiator::TakeOutgoing() {
  std::vector<Outgoing> outgoing;
  if (!is_root() && report_.ByteSizeLong() > 0) {
    wire::Message message;
    *message.mutable_report() = std::exchange(report_, {});
    outgoing.push_back({tree_.parent, std::move(message)});
  }
  if (directive_.ByteSizeLong() > 0) {
    wire::Message message;
    *message.mutable_directive() = std::exchange(directive_, {});
    for (const TreePosition::Child& child : tree_.children) {
      outgoing.push_back({child.rank, message});
    }
  }
  return outgoing;
}

// ---- Decisions, on their way down.

std::optional<Decision> Negotiator::NextDecision() {
  if (is_root() && decisions_.empty() && !batch_running_) {
    for (wire::Decision& decision : decision_maker_.Next()) {
      Decide(std::move(decision));
    }
  }
  if (decisions_.empty() || batch_running_) return std::nullopt;
  Decision decision = std::move(decisions_.front());
  decisions_.pop_front();
  batch_running_ = decision.kind == Decision::Kind::kBatch;
  return decision;
}

void Negotiator::Decide(wire::Decision decision) {
  decision.set_number(last_decision_ + 1);
  *directive_.add_decisions() = decision;
  // The root's own decisions follow the protocol.
  Apply(decision).IgnoreError();
}

absl::Status Negotiator::Apply(const wire::Decision& message) {
  if (message.number() != last_decision_ + 1) {
    return ProtocolError(absl::StrCat("decision ", message.number(),
                                      " came after decision ", last_decision_));
  }
  last_decision_ = message.number();
  Decision decision;
  decision.number = message.number();
  switch (message.kind_case()) {
    case wire::Decision::kBatch: {
      decision.kind = Decision::Kind::kBatch;
      const absl::Status status = ApplyBatch(message.batch(), &decision);
      if (!status.ok()) return status;
      break;
    }
    case wire::Decision::kFailure: {
      decision.kind = Decision::Kind::kFailure;
      decision.message = message.failure().message();
      TensorSlot* slot = table_.Find(message.failure().name());
      if (slot == nullptr) {
        return ProtocolError("a failure of a tensor that is not pending");
      }
      decision.failed = slot->token;
      if (slot->token.has_value()) --pending_;
      table_.EndInstance(*slot);
      break;
    }
    case wire::Decision::kDeparture: {
      const wire::Departure& departure = message.departure();
      if (departure.rank() < 0 ||
          departure.rank() >= static_cast<int>(options_.host_names.size())) {
        return ProtocolError("a departure of a rank that does not exist");
      }
      decision.kind = Decision::Kind::kDeparture;
      decision.message =
          absl::StrCat("rank ", departure.rank(), " (",
                       options_.host_names[departure.rank()],
                       ") has left the world: ", departure.reason());
      AbandonPending();
      break;
    }
    case wire::Decision::kBroken:
      decision.kind = Decision::Kind::kBroken;
      decision.message = message.broken();
      AbandonPending();
      break;
    case wire::Decision::kShutdown:
      decision.kind = Decision::Kind::kShutdown;
      break;
    case wire::Decision::KIND_NOT_SET:
      return ProtocolError("a decision of an unknown kind");
  }
  decisions_.push_back(std::move(decision));
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyBatch(const wire::Batch& batch,
                                    Decision* decision) {
  for (const wire::Registration& registration : batch.registered()) {
    auto request = FromWire(registration.request());
    if (!request.ok()) return request.status();
    table_.Register(registration.id(), *std::move(request));
  }
  const auto by_id = [&](uint32_t id) { return table_.FindById(id); };
  const auto by_name = [&](const std::string& name) {
    return table_.Find(name);
  };
  bool known = true;
  const auto append = [&](TensorSlot* slot) {
    known = known && slot != nullptr;
    if (slot != nullptr) AppendTensor(*slot, batch, decision);
  };
  for (const uint32_t id : batch.ids()) append(by_id(id));
  for (const auto& registration : batch.registered()) {
    append(by_id(registration.id()));
  }
  for (const std::string& name : batch.names()) append(by_name(name));

  for (const auto& registration : batch.absent_registered()) {
    auto request = FromWire(registration.request());
    if (!request.ok()) return request.status();
    table_.Register(registration.id(), *std::move(request));
  }
  const auto append_absent = [&](TensorSlot* slot) {
    known = known && slot != nullptr && slot->token.has_value();
    if (!known) return;
    decision->absent.push_back(*slot->token);
    --pending_;
    table_.EndInstance(*slot);
  };
  for (const uint32_t id : batch.absent_ids()) append_absent(by_id(id));
  for (const std::string& name : batch.absent_names()) {
    append_absent(by_name(name));
  }
  for (const auto& registration : batch.absent_registered()) {
    append_absent(by_id(registration.id()));
  }
  return known ? absl::OkStatus()
               : ProtocolError("a batch with a tensor that is not pending");
}

void Negotiator::AppendTensor(TensorSlot& slot, const wire::Batch& batch,
                              Decision* decision) {
  const int index = static_cast<int>(decision->tensors.size());
  Decision::Tensor tensor;
  if (index < batch.last_ranks_size() && index < batch.lateness_us_size()) {
    tensor.last_rank = batch.last_ranks(index);
    tensor.lateness_us = batch.lateness_us(index);
  }
  tensor.token = slot.token.value_or(0);
  decision->tensors.push_back(tensor);
  --pending_;
  table_.EndInstance(slot);
}

void Negotiator::AbandonPending() {
  abandoned_ = true;
  for (TensorSlot* slot : table_.All()) slot->token.reset();
  pending_ = 0;
}

// ---- Stalls.

void Negotiator::Advance(int64_t now_ns) {
  now_ns_ = now_ns;
  if (pending_ > 0) {
    for (wire::Stall& stall : stalls_.Overdue(table_, now_ns)) {
      if (is_root()) {
        stalls_.OnStall(stall, now_ns_);
      } else {
        *report_.add_stalls() = std::move(stall);
      }
    }
  }
  InspectStalls();
}

void Negotiator::OnInquiry(const wire::Inquiry& inquiry) {
  *directive_.mutable_inquiry() = inquiry;
  stalls_.Begin(inquiry, table_, now_ns_);
  InspectStalls();
}

void Negotiator::InspectStalls() {
  std::optional<StallInspector::Answer> answer = stalls_.TakeAnswer(now_ns_);
  if (answer.has_value() && !is_root()) {
    report_.set_inquiry(answer->inquiry);
    report_.clear_answers();
    for (wire::StallAnswer& tensor : answer->answers) {
      *report_.add_answers() = std::move(tensor);
    }
  }
  if (!is_root()) return;
  if (answer.has_value()) {
    for (StallInspector::Verdict& verdict :
         stalls_.Verdicts(*answer, options_.host_names)) {
      if (verdict.fatal) {
        BreakWorld(verdict.message);
      } else {
        warnings_.push_back(std::move(verdict.message));
      }
    }
  }
  if (auto inquiry = stalls_.NextInquiry(); inquiry.has_value()) {
    OnInquiry(*inquiry);
  }
}

std::vector<std::string> Negotiator::TakeWarnings() {
  return std::exchange(warnings_, {});
}

std::optional<int64_t> Negotiator::next_deadline_ns() const {
  return stalls_.next_deadline_ns(pending_ > 0);
}

}  // namespace hvdlite::negotiation
