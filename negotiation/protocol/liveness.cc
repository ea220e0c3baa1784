#include "negotiation/protocol/liveness.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {
namespace {

std::vector<int> NeighboursOf(const TreePosition& tree) {
  std::vector<int> neighbours;
  if (tree.parent >= 0) neighbours.push_back(tree.parent);
  for (const TreePosition::Child& child : tree.children) {
    neighbours.push_back(child.rank);
  }
  return neighbours;
}

}  // namespace

Heartbeat::Heartbeat(const Options& options, absl::Span<const int> neighbours)
    : options_(options),
      interval_ns_(absl::ToInt64Nanoseconds(
          std::min(options.interval, options.timeout))) {
  for (const int rank : neighbours) neighbours_.emplace_back().rank = rank;
}

bool Heartbeat::PassesOn(const Neighbour& neighbour, int64_t now_ns) const {
  // Pings come once per interval, but not to the nanosecond.
  return neighbour.pinged_us_ns.has_value() &&
         now_ns - *neighbour.pinged_us_ns < interval_ns_ * 5 / 2;
}

std::optional<Heartbeat::Lost> Heartbeat::Advance(bool waiting,
                                                  int64_t now_ns) {
  const int64_t passed_ns = now_ns - std::exchange(now_ns_, now_ns);
  if (!on()) return std::nullopt;
  // Deadlines come once per interval: this rank was busy or stopped itself.
  const int64_t not_counted_ns = passed_ns > 2 * interval_ns_ ? passed_ns : 0;
  const auto passing_on =
      std::count_if(neighbours_.begin(), neighbours_.end(),
                    [&](const Neighbour& n) { return PassesOn(n, now_ns); });
  std::optional<Lost> lost;
  for (Neighbour& neighbour : neighbours_) {
    const bool watches =
        waiting || passing_on > (PassesOn(neighbour, now_ns) ? 1 : 0);
    if (!watches || !neighbour.watched) {
      neighbour.watched = watches;
      neighbour.quiet_since_ns = now_ns;
      neighbour.asked_ns.reset();
      neighbour.to_ping = false;
      continue;
    }
    if (neighbour.asked_ns.has_value()) {
      *neighbour.asked_ns += not_counted_ns;
      if (absl::Nanoseconds(now_ns - *neighbour.asked_ns) >= options_.timeout) {
        if (lost.has_value()) continue;  // the next time
        lost = {neighbour.rank,
                absl::Nanoseconds(now_ns - neighbour.quiet_since_ns)};
        neighbour.asked_ns = neighbour.last_ping_ns = now_ns;
      } else if (now_ns - neighbour.last_ping_ns >= interval_ns_) {
        neighbour.to_ping = true;
        neighbour.last_ping_ns = now_ns;
      }
    } else if (now_ns - neighbour.quiet_since_ns >= interval_ns_) {
      neighbour.to_ping = true;
      neighbour.asked_ns = neighbour.last_ping_ns = now_ns;
    }
  }
  return lost;
}

void Heartbeat::OnMessage(int rank, bool is_ping, int64_t now_ns) {
  Neighbour* const neighbour = Find(rank);
  if (neighbour == nullptr) return;
  neighbour->quiet_since_ns = now_ns;
  neighbour->asked_ns.reset();
  neighbour->to_ping = false;
  if (!is_ping) return;
  neighbour->pinged_us_ns = now_ns;
  neighbour->to_answer = true;
}

Heartbeat::Signs Heartbeat::Take(int rank, bool sends) {
  Neighbour* const neighbour = Find(rank);
  if (neighbour == nullptr) return {};
  Signs signs;
  signs.ping = std::exchange(neighbour->to_ping, false);
  const bool answers = std::exchange(neighbour->to_answer, false);
  signs.pong = answers && !sends && !signs.ping;
  return signs;
}

std::optional<int64_t> Heartbeat::next_deadline_ns() const {
  std::optional<int64_t> deadline;
  for (const Neighbour& neighbour : neighbours_) {
    if (!neighbour.watched) continue;
    const int64_t next_ns = interval_ns_ + (neighbour.asked_ns.has_value()
                                                ? neighbour.last_ping_ns
                                                : neighbour.quiet_since_ns);
    deadline = std::min(deadline.value_or(next_ns), next_ns);
  }
  return deadline;
}

Heartbeat::Neighbour* Heartbeat::Find(int rank) {
  for (Neighbour& neighbour : neighbours_) {
    if (neighbour.rank == rank) return &neighbour;
  }
  return nullptr;
}

Liveness::Liveness(const Options& options, const TreePosition& tree,
                   const Membership& membership)
    : late_after_(std::min(options.stall_warning, options.stall_failure)),
      heartbeat_(options.heartbeat, NeighboursOf(tree)),
      stalls_({.rank = options.rank,
               .warning = options.stall_warning,
               .failure = options.stall_failure,
               .explains = options.explains},
              tree, membership) {}

Liveness::Findings Liveness::Advance(Phase phase, int64_t since_ns,
                                     int64_t now_ns) {
  const PhaseRule& rule = RuleOf(phase);
  since_ns_ = std::max(since_ns_, since_ns);
  Findings findings;
  findings.lost = heartbeat_.Advance(rule.silent_neighbours, now_ns);
  if (rule.late_at_gate &&
      absl::Nanoseconds(now_ns - since_ns_) >= late_after_) {
    since_ns_ = now_ns;
    findings.late_at_gate = absl::Nanoseconds(now_ns - since_ns);
  }
  return findings;
}

std::optional<int64_t> Liveness::next_deadline_ns(Phase phase) const {
  const PhaseRule& rule = RuleOf(phase);
  // In the end nobody is asked any more.
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
