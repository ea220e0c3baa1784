// Explainer reports what this process is doing, for ranks that wait for it, and
// what other processes of its host are doing, as seen from outside.
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

// A stack is taken by a real-time signal to its thread. The handler is
// installed while an explainer exists, if one of a few signals is free. The
// signal may interrupt a call in which the thread sleeps (EINTR), as any signal
// does.
//
// CPU time and bytes are those of the last one or two windows, or since the
// last explanation. One thread at a time may call Explain, Look and Sample.
class Explainer {
 public:
  // Explains the calling thread, which belongs to the application. `window`:
  // the minimum time over which CPU time is reported, if Sample() is called
  // often enough.
  Explainer(const base::Clock& clock, absl::Duration window);
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  // Records the usage so far; cheap unless `window` has passed.
  void Sample();
  // Explains this process, from inside.
  negotiation::Explanation Explain();
  // Looks at a process from outside; nullopt: it does not exist.
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
  std::vector<bool> visible;  // by rank: in this machine and pid namespace
};
// Exchanges the processes' ids; collective.
absl::StatusOr<Processes> ExchangeProcesses(
    collective::Communicator& communicator);

// Returns the frames of `thread` of this process, innermost first, at most 32,
// one per line; or in brackets why there are none. Returns within 2 s, even if
// handlers or the dynamic linker hang. Frames whose names are not known by then
// are addresses.
std::string StackOf(pid_t thread);

// While an object exists, SIGUSR2 to this process calls `asked` from a signal
// handler. Does nothing if SIGUSR2 has another action than its default, or
// another object exists.
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
