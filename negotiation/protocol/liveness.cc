#include "negotiation/protocol/liveness.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::negotiation {
namespace {

constexpr int64_t kLookAgainNs = 1'000'000;

std::vector<int> NeighboursOf(const TreePosition& tree) {
  std::vector<int> neighbours;
  if (tree.parent >= 0) neighbours.push_back(tree.parent);
  for (const TreePosition::Child& child : tree.children) {
    neighbours.push_back(child.rank);
  }
  return neighbours;
}

}  // namespace

Liveness::Liveness(const Options& options, HostEnvironment host_environment)
    : options_(options),
      host_environment_(std::move(host_environment)),
      late_after_(std::min(options.stall_warning, options.stall_failure)),
      heartbeat_(options.heartbeat, NeighboursOf(host_environment_.tree)),
      stalls_({.rank = options.rank,
               .warning = options.stall_warning,
               .failure = options.stall_failure,
               .explains = options.explains},
              host_environment_.tree, host_environment_.membership) {}

// ---- What takes too long.

Phase Liveness::PhaseIn(const Situation& situation) const {
  if (situation.over) return Phase::kComputing;
  if (host_environment_.queue.runs()) return Phase::kInDataPlane;
  const Decision* const next = host_environment_.queue.next();
  if (next != nullptr && next->kind == Decision::Kind::kShutdown) {
    return Phase::kEnding;
  }
  if (next != nullptr && next->arrived_ns.has_value()) return Phase::kAtGate;
  if (left_) return Phase::kLeaving;
  return situation.waits || next != nullptr ? Phase::kNegotiating
                                            : Phase::kComputing;
}

bool Liveness::Advance(const Situation& situation, int64_t now_ns) {
  now_ns_ = now_ns;
  // A waiting rank calls this very often; it rarely has to check.
  if (now_ns < look_again_ns_) return false;
  looked_phase_ = PhaseIn(situation);
  const PhaseRule& rule = RuleOf(looked_phase_);
  const Decision* const next = host_environment_.queue.next();
  const std::optional<int64_t> next_arrived_ns =
      next == nullptr ? std::nullopt : next->arrived_ns;
  const auto lost = heartbeat_.Advance(rule.silent_neighbours, now_ns);
  bool over = situation.over;
  if (lost.has_value() && !over) over = OnLost(*lost);
  if (rule.late_at_gate) {
    const int64_t arrived_ns = next_arrived_ns.value_or(now_ns);
    since_ns_ = std::max(since_ns_, arrived_ns);
    if (absl::Nanoseconds(now_ns - since_ns_) >= late_after_) {
      since_ns_ = now_ns;
      if (!over) OnLateAtGate(absl::Nanoseconds(now_ns - arrived_ns));
    }
  }
  if (rule.missing_ranks && !over) {
    stalls_.Look(host_environment_.table, situation.joining_since_ns, now_ns);
  }
  Inspect();
  look_again_ns_ = now_ns + kLookAgainNs;
  Situation then = situation;
  then.over = over;
  if (const auto deadline_ns = next_deadline_ns(then)) {
    look_again_ns_ = std::min(look_again_ns_, *deadline_ns);
  }
  return true;
}

bool Liveness::OnLost(const Heartbeat::Lost& lost) {
  const WorldLayout& layout = *options_.layout;
  const bool one_host =
      layout.leader_index(lost.rank) == layout.leader_index(options_.rank);
  const std::string reason = absl::StrCat(
      options_.layout->NameOf(lost.rank), " has given no sign of life to ",
      options_.layout->NameOf(options_.rank), " for ",
      absl::FormatDuration(absl::Trunc(lost.silent, absl::Seconds(1))),
      "; check whether its process is stopped or overloaded, ",
      !one_host ? "its host is down, or the link between the two is cut"
      : layout.leaders().size() > 1
          // A rank inside a call of MPI answers no other rank.
          ? "or waits in MPI for a rank of another host that is gone or cut off"
          : "or waits in MPI for a rank that is gone");
  return host_environment_.end_world(
      reason, lost.rank == host_environment_.tree.parent);
}

std::string Liveness::DescribeLateAtGate(absl::Duration waiting) const {
  const Decision& next = *host_environment_.queue.next();
  std::vector<std::string> missing;
  for (const int neighbour : host_environment_.queue.Missing()) {
    missing.push_back(absl::StrCat(options_.layout->NameOf(neighbour),
                                   neighbour == host_environment_.tree.parent
                                       ? " or ranks above it"
                                       : " or ranks below it"));
  }
  const bool ends = next.kind == Decision::Kind::kShutdown;
  return absl::StrCat(
      options_.layout->NameOf(options_.rank), " has waited ",
      absl::FormatDuration(absl::Trunc(waiting, absl::Seconds(1))), " to ",
      ends ? "end the world, which all ranks have left"
           : absl::StrCat("begin '", next.name,
                          "', which all ranks have submitted"),
      ", for ",
      missing.empty() ? "the delivery of what it relays"
                      : absl::StrJoin(missing, ", "),
      ends ? ". They have left it because of an exception or because an "
             "optimizer was destroyed, but have not called "
             "hvdlite::shutdown() or exited"
           : ". They may be in a long reduction of another process set; if "
             "not, check whether their processes get CPU time");
}

void Liveness::OnLateAtGate(absl::Duration waiting) {
  const Decision& next = *host_environment_.queue.next();
  if (!next.arrived_ns.has_value()) return;  // others wait for this rank
  std::string text = DescribeLateAtGate(waiting);
  if (next.kind == Decision::Kind::kShutdown &&
      waiting >= options_.stall_failure) {
    host_environment_.end_world(text, false);
  } else {
    warnings_.push_back(std::move(text));
  }
}

// ---- Ranks that have left.

void Liveness::Leave(const std::string& reason) {
  if (std::exchange(left_, true)) return;
  wire::Departure departure;
  departure.set_rank(options_.rank);
  departure.set_reason(reason);
  stalls_.OnLeave(now_ns_);
  OnDeparture(departure);
  OnAllLeft(0);
}

// Everything that all ranks have submitted has to run before any rank leaves.
// So all ranks are asked for the reports that they hold back.
void Liveness::OnDeparture(const wire::Departure& departure) {
  if (std::exchange(departing_, true)) return;
  if (!is_root()) {
    *host_environment_.to_parent.rest().mutable_departure() = departure;
    return;
  }
  departure_ = departure;
  stalls_.ProbeInAnyCase();
  Inspect();
}

void Liveness::OnReport(int source, const wire::Report& report,
                        const Situation& situation) {
  if (report.has_departure()) OnDeparture(report.departure());
  if (report.all_left()) OnAllLeft(source);
  for (const wire::Stall& stall : report.stalls()) {
    stalls_.OnStall(stall, now_ns_);
  }
  if (report.explains_all()) AskEverybody(situation);
  if (report.has_answer()) {
    stalls_.probe().OnAnswer(host_environment_.tree.children[source - 1].rank,
                             report.answer());
  }
  if (!report.broken().empty())
    host_environment_.end_world(report.broken(), false);
  Inspect();
}

void Liveness::OnAllLeft(int source) {
  left_sources_ |= uint64_t{1} << source;
  const uint64_t all =
      (uint64_t{2} << host_environment_.tree.children.size()) - 1;
  if (left_sources_ != all) return;
  if (is_root()) {
    Inspect();
  } else {
    host_environment_.to_parent.rest().set_all_left(true);
  }
}

// ---- Missing ranks, and what they are doing.

void Liveness::OnProbe(const wire::Probe& probe) {
  *host_environment_.to_children.mutable_probe() = probe;
  stalls_.probe().Begin(probe, host_environment_.table, now_ns_);
  Inspect();
}

bool Liveness::Explain(
    absl::FunctionRef<std::optional<Explanation>()> self,
    absl::FunctionRef<std::optional<ProcessSample>(int rank)> look,
    bool waits) {
  StallProbe& probe = stalls_.probe();
  if (!probe.is_open()) return false;
  bool explained = false;
  if (probe.awaits_explanation()) {
    if (std::optional<Explanation> explanation = self()) {
      explained = true;
      probe.Explain(*std::move(explanation), waits);
      Inspect();
    }
  }
  for (const int rank : probe.TakeLooks(now_ns_)) {
    if (const auto sample = look(rank)) probe.OnLook(rank, *sample);
  }
  return explained;
}

void Liveness::AskEverybody(const Situation& situation) {
  if (situation.over || PhaseIn(situation) == Phase::kEnding) return;
  if (!is_root()) {
    host_environment_.to_parent.rest().set_explains_all(true);
    return;
  }
  stalls_.AskEverybody();
  Inspect();
}

void Liveness::Conclude(const wire::Answer& answer) {
  static const std::vector<int> kNoPids;
  const std::vector<std::string>& hosts = options_.layout->host_names();
  const std::vector<int>& pids =
      options_.pids != nullptr ? *options_.pids : kNoPids;
  if (auto report = stalls_.ReportOfEverybody(answer, hosts, pids)) {
    warnings_.push_back(*std::move(report));
  }
  StallInspector::Verdict verdict =
      stalls_.Conclude(answer, hosts, pids, now_ns_);
  if (verdict.message.empty()) return;
  if (!verdict.fatal) {
    warnings_.push_back(absl::StrCat(verdict.message, verdict.details));
    return;
  }
  // The text that all ranks get stays short.
  if (!verdict.details.empty()) {
    warnings_.push_back(absl::StrCat("the world ends because of these ranks:",
                                     verdict.details));
  }
  host_environment_.end_world(verdict.message, false);
}

void Liveness::Inspect() {
  std::optional<wire::Answer> answer = stalls_.probe().TakeAnswer(now_ns_);
  if (!is_root()) {
    if (answer.has_value()) {
      *host_environment_.to_parent.rest().mutable_answer() = *std::move(answer);
    }
    for (wire::Stall& stall : stalls_.TakeStalls(now_ns_)) {
      *host_environment_.to_parent.rest().add_stalls() = std::move(stall);
    }
    return;
  }
  if (answer.has_value()) {
    Conclude(*answer);
    if (answer->probe() == last_call_) {
      last_call_answered_ = true;
      host_environment_.decision_maker.OnDeparture(*departure_);
    }
  }
  const uint64_t all =
      (uint64_t{2} << host_environment_.tree.children.size()) - 1;
  if (left_sources_ == all && last_call_answered_) {
    // An answer might come after the shutdown, so it is awaited first.
    if (!stalls_.probe().is_open())
      host_environment_.decision_maker.OnAllLeft();
    return;
  }
  if (auto probe = stalls_.NextProbe(now_ns_); probe.has_value()) {
    if (departure_.has_value() && !last_call_.has_value()) {
      last_call_ = probe->number();
    }
    OnProbe(*probe);
  }
}

std::vector<std::string> Liveness::TakeWarnings() {
  return std::exchange(warnings_, {});
}

std::optional<int64_t> Liveness::next_deadline_ns(
    const Situation& situation) const {
  if (situation.over) return std::nullopt;
  const Phase phase = PhaseIn(situation);
  if (phase != looked_phase_) return look_again_ns_;  // what it watches differs
  const PhaseRule& rule = RuleOf(phase);
  // At the end, no rank is asked any more.
  std::optional<int64_t> deadline;
  if (phase != Phase::kEnding) {
    deadline = stalls_.next_deadline_ns(rule.missing_ranks);
  }
  const auto no_later_than = [&](int64_t time_ns) {
    deadline = std::min(deadline.value_or(time_ns), time_ns);
  };
  if (const auto next_ns = heartbeat_.next_deadline_ns()) {
    no_later_than(*next_ns);
  }
  if (rule.late_at_gate && late_after_ < absl::InfiniteDuration()) {
    no_later_than(since_ns_ + absl::ToInt64Nanoseconds(late_after_));
  }
  return deadline;
}

}  // namespace hvdlite::negotiation
