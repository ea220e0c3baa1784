// How the Negotiator leaves the world and ends it, and its watch over ranks
// that submit nothing (stalls) and over those that give no sign of life
// (heartbeat).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::negotiation {
namespace {

constexpr int64_t kLookAgainNs = 1'000'000;

}  // namespace

void Negotiator::Leave(const std::string& reason) {
  Touch();
  if (std::exchange(left_, true)) return;
  wire::Departure departure;
  departure.set_rank(options_.rank);
  departure.set_reason(reason);
  liveness_.stalls().OnLeave(now_ns_);
  OnDeparture(departure);
  OnAllLeft(kSelf);
}

void Negotiator::Abort(const std::string& reason) {
  Touch();
  EndSubtree(absl::StrCat("rank ", options_.rank, " (",
                          options_.layout->host_names()[options_.rank],
                          ") cannot go on: ", reason));
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

Phase Negotiator::phase() const {
  if (over()) return Phase::kComputing;
  if (running_) return Phase::kInDataPlane;
  if (!decisions_.empty() &&
      decisions_.front().kind == Decision::Kind::kShutdown) {
    return Phase::kEnding;
  }
  if (!decisions_.empty() && decisions_.front().arrived_ns.has_value()) {
    return Phase::kAtGate;
  }
  if (left_) return Phase::kLeaving;
  const bool waits =
      pending_ > 0 || join_token_.has_value() || !decisions_.empty();
  return waits ? Phase::kNegotiating : Phase::kComputing;
}

std::string Negotiator::NameOfRank(int rank) const {
  return absl::StrCat("rank ", rank, " (", options_.layout->host_names()[rank],
                      ")");
}

void Negotiator::OnLost(const Heartbeat::Lost& lost) {
  const WorldLayout& layout = *options_.layout;
  const bool one_host =
      layout.leader_index(lost.rank) == layout.leader_index(options_.rank);
  const std::string reason = absl::StrCat(
      NameOfRank(lost.rank), " has given no sign of life to ",
      NameOfRank(options_.rank), " for ",
      absl::FormatDuration(absl::Trunc(lost.silent, absl::Seconds(1))),
      "; see whether its process is stopped or swamped, ",
      !one_host ? "its host is down, or the link between the two is cut"
      : layout.leaders().size() > 1
          // Inside a call of MPI it answers nobody.
          ? "or waits in MPI for a rank of another host, which is gone or cut "
            "off"
          : "or waits in MPI for a rank that is gone");
  if (lost.rank == tree_.parent) {
    EndSubtree(reason);
  } else {
    BreakWorld(reason);
  }
}

std::string Negotiator::DescribeLateAtGate(absl::Duration waiting) const {
  const Decision& next = decisions_.front();
  std::vector<std::string> missing;
  for (const int neighbour : gates_.Missing(next.number)) {
    missing.push_back(
        absl::StrCat(NameOfRank(neighbour), neighbour == tree_.parent
                                                ? " or ranks above it"
                                                : " or ranks below it"));
  }
  const bool ends = next.kind == Decision::Kind::kShutdown;
  return absl::StrCat(
      NameOfRank(options_.rank), " has waited ",
      absl::FormatDuration(absl::Trunc(waiting, absl::Seconds(1))), " to ",
      ends ? "end the world, which all have left"
           : absl::StrCat("begin '", next.name, "', which all have submitted"),
      ", for ",
      missing.empty() ? "what it relays to others"
                      : absl::StrJoin(missing, ", "),
      ends ? ". They have left it by an exception or an optimizer's end, but "
             "have not called hvdlite::shutdown() or exited"
           : ". They may be in a long batch of another process set; if not, "
             "see whether their processes get their cores");
}

void Negotiator::OnLateAtGate(absl::Duration waiting) {
  const Decision& next = decisions_.front();
  if (!next.arrived_ns.has_value()) return;  // others wait for this rank
  std::string text = DescribeLateAtGate(waiting);
  if (next.kind == Decision::Kind::kShutdown &&
      waiting >= options_.stall_failure) {
    BreakWorld(text);
  } else {
    warnings_.push_back(std::move(text));
  }
}

void Negotiator::Advance(int64_t now_ns) {
  now_ns_ = now_ns;
  // Who waits looks again and again: all of the below but once in a while.
  if (now_ns < look_again_ns_) return;
  const Phase now = phase();
  looked_phase_ = now;
  Touch();
  int64_t since_ns = now_ns;
  if (RuleOf(now).late_at_gate) {
    since_ns = decisions_.front().arrived_ns.value_or(now_ns);
  }
  const Liveness::Findings found = liveness_.Advance(now, since_ns, now_ns);
  if (found.lost.has_value() && !over()) OnLost(*found.lost);
  if (found.late_at_gate.has_value() && !over()) {
    OnLateAtGate(*found.late_at_gate);
  }
  if (RuleOf(now).missing_ranks) {
    liveness_.stalls().Look(table_,
                            join_token_.has_value()
                                ? std::optional(join_submitted_ns_)
                                : std::nullopt,
                            now_ns);
  }
  InspectStalls();
  look_again_ns_ = now_ns + kLookAgainNs;
  if (const auto deadline_ns = next_deadline_ns()) {
    look_again_ns_ = std::min(look_again_ns_, *deadline_ns);
  }
}

void Negotiator::OnProbe(const wire::Probe& probe) {
  *directive_.mutable_probe() = probe;
  liveness_.stalls().probe().Begin(probe, table_, now_ns_);
  InspectStalls();
}

void Negotiator::Explain(
    absl::FunctionRef<std::optional<Explanation>()> self,
    absl::FunctionRef<std::optional<ProcessSample>(int rank)> look) {
  StallProbe& probe = liveness_.stalls().probe();
  if (!probe.is_open()) return;
  if (probe.awaits_explanation()) {
    if (std::optional<Explanation> explanation = self()) {
      Touch();
      probe.Explain(*std::move(explanation), waits_ != Waits::kNot);
      InspectStalls();
    }
  }
  for (const int rank : probe.TakeLooks(now_ns_)) {
    if (const auto sample = look(rank)) probe.OnLook(rank, *sample);
  }
}

void Negotiator::AskEverybody() {
  Touch();
  if (over() || phase() == Phase::kEnding) return;
  if (!is_root()) {
    report_.rest().set_explains_all(true);
    return;
  }
  liveness_.stalls().AskEverybody();
  InspectStalls();
}

void Negotiator::Conclude(const wire::Answer& answer) {
  static const std::vector<int> kNoPids;
  const std::vector<std::string>& hosts = options_.layout->host_names();
  const std::vector<int>& pids =
      options_.pids != nullptr ? *options_.pids : kNoPids;
  StallInspector& stalls = liveness_.stalls();
  if (auto report = stalls.ReportOfEverybody(answer, hosts, pids)) {
    warnings_.push_back(*std::move(report));
  }
  StallInspector::Verdict verdict =
      stalls.Conclude(answer, hosts, pids, now_ns_);
  if (verdict.message.empty()) return;
  if (!verdict.fatal) {
    warnings_.push_back(absl::StrCat(verdict.message, verdict.details));
    return;
  }
  // What all ranks hear stays short.
  if (!verdict.details.empty()) {
    warnings_.push_back(absl::StrCat(
        "what ranks are doing for which the world ends:", verdict.details));
  }
  BreakWorld(verdict.message);
}

void Negotiator::InspectStalls() {
  std::optional<wire::Answer> answer =
      liveness_.stalls().probe().TakeAnswer(now_ns_);
  if (!is_root()) {
    if (answer.has_value()) {
      *report_.rest().mutable_answer() = *std::move(answer);
    }
    for (wire::Stall& stall : liveness_.stalls().TakeStalls(now_ns_)) {
      *report_.rest().add_stalls() = std::move(stall);
    }
    return;
  }
  if (answer.has_value()) {
    Conclude(*answer);
    if (answer->probe() == last_call_) {
      last_call_answered_ = true;
      decision_maker_.OnDeparture(*departure_);
    }
  }
  const uint64_t all = (uint64_t{2} << tree_.children.size()) - 1;
  if (left_sources_ == all && last_call_answered_) {
    // An answer might come after the shutdown: it is waited for before.
    if (!liveness_.stalls().probe().is_open()) decision_maker_.OnAllLeft();
    return;
  }
  if (auto probe = liveness_.stalls().NextProbe(now_ns_); probe.has_value()) {
    if (departure_.has_value() && !last_call_.has_value()) {
      last_call_ = probe->number();
    }
    OnProbe(*probe);
  }
}

std::vector<std::string> Negotiator::TakeWarnings() {
  return std::exchange(warnings_, {});
}

std::optional<int64_t> Negotiator::next_deadline_ns() const {
  if (over()) return std::nullopt;
  const Phase now = phase();
  if (now != looked_phase_)
    return look_again_ns_;  // what it watches may differ
  return liveness_.next_deadline_ns(now);
}

}  // namespace hvdlite::negotiation
