// Explainer: what this process is doing, for those that wait for it; and what
// others of its host are doing, from outside.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "negotiation/protocol/process_look.h"

namespace hvdlite::internal {

// Stacks are taken by a real-time signal to the thread whose stack it is; the
// handler is there while explainers live, if one of a few signals is free. A
// call in which that thread sleeps may be cut short by it (EINTR), as by any
// signal.
//
// CPU time and bytes are those of one or two windows, or since the last
// explanation. Explain, Look and Sample are for one thread at a time.
class Explainer {
 public:
  // Of the calling thread, the application's. `window`: over which CPU time is
  // told, at least, as far as Sample() is called often enough.
  Explainer(const base::Clock& clock, absl::Duration window);
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  // Takes note of what was used so far; cheap unless `window` is over.
  void Sample();
  // From within.
  negotiation::Explanation Explain();
  // From outside; nullopt: there is no such process.
  std::optional<negotiation::ProcessSample> Look(pid_t pid) const;

 private:
  const base::Clock& clock_;
  const int64_t window_ns_;
  const pid_t thread_;
  negotiation::ProcessSample older_;
  negotiation::ProcessSample newer_;
};

// The processes of all ranks, and which of them this one can look at.
struct Processes {
  std::shared_ptr<const std::vector<int>> pids;
  std::vector<bool> visible;  // by rank: of this machine and pid namespace
};
// Collective.
absl::StatusOr<Processes> ExchangeProcesses(
    collective::Communicator& communicator);

// The frames of `thread` of this process, innermost first, at most 32, one per
// line; or why there are none, in brackets. Comes back within 2 s, whatever
// handlers and the dynamic linker do: of frames whose names are not known then,
// the addresses.
std::string StackOf(pid_t thread);

// Calls `asked`, from a signal handler, when the process gets SIGUSR2, until it
// is destroyed. Nothing where SIGUSR2 has another action than its default, or
// there is one of these.
class Usr2Handler {
 public:
  explicit Usr2Handler(std::function<void()> asked);
  ~Usr2Handler();
  Usr2Handler(const Usr2Handler&) = delete;
  Usr2Handler& operator=(const Usr2Handler&) = delete;

 private:
  const std::function<void()> asked_;
  bool installed_ = false;
};

}  // namespace hvdlite::internal
