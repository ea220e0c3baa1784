#include "negotiation/protocol/liveness.h"

#include <algorithm>
#include <utility>
#include <vector>

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

Liveness::Liveness(const Options& options, const TreePosition& tree,
                   const Membership& membership)
    : late_after_(std::min(options.stall_warning, options.stall_failure)),
      heartbeat_(options.heartbeat, NeighboursOf(tree)),
      stalls_({.rank = options.rank,
               .warning = options.stall_warning,
               .failure = options.stall_failure},
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
