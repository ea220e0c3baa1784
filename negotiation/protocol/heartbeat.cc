#include "negotiation/protocol/heartbeat.h"

#include <algorithm>

namespace hvdlite::negotiation {

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
  // Deadlines come once per interval. A longer gap means that this rank was
  // busy or stopped.
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
        if (lost.has_value()) continue;  // next time
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

}  // namespace hvdlite::negotiation
