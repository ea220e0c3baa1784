// Heartbeat detects neighbours in the tree that give no sign of life.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

// While this rank waits for others, it pings a neighbour that was silent for
// `interval`, and again every `interval`. Any message of the neighbour is an
// answer. A neighbour that has not answered for `timeout` is lost: its process
// is stopped, its host is down, or the link is cut. A rank that is pinged does
// the same with its other neighbours. So all links from a waiting rank to the
// faulty place are checked, and no message is sent while no rank waits.
//
// Time in which this rank itself did not read its messages does not count:
// answers may have come in meanwhile. There is no I/O, thread or clock.
class Heartbeat {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(1);
    absl::Duration timeout = absl::Seconds(30);  // infinite: no heartbeat
  };
  Heartbeat(const Options& options, absl::Span<const int> neighbours);

  // Sets the time. Returns a lost neighbour, if there is one; each of them once
  // per timeout.
  struct Lost {
    int rank = 0;
    absl::Duration silent;
  };
  std::optional<Lost> Advance(bool waiting, int64_t now_ns);

  // A message of a neighbour has arrived.
  void OnMessage(int rank, bool is_ping, int64_t now_ns);

  // What to send to a neighbour now. `sends`: the neighbour gets another
  // message in any case.
  struct Signs {
    bool ping = false;
    bool pong = false;
  };
  Signs Take(int rank, bool sends);

  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns() const;

 private:
  struct Neighbour {
    int rank = 0;
    bool watched = false;
    int64_t quiet_since_ns = 0;       // last heard of, or watched since
    std::optional<int64_t> asked_ns;  // first unanswered ping
    int64_t last_ping_ns = 0;
    std::optional<int64_t> pinged_us_ns;  // arrival of its last ping
    bool to_ping = false;
    bool to_answer = false;
  };

  bool on() const { return options_.timeout < absl::InfiniteDuration(); }
  // Whether its ping is recent enough to be passed on.
  bool PassesOn(const Neighbour& neighbour, int64_t now_ns) const;
  Neighbour* Find(int rank);

  const Options options_;
  const int64_t interval_ns_;
  std::vector<Neighbour> neighbours_;
  int64_t now_ns_ = 0;
};

}  // namespace hvdlite::negotiation
