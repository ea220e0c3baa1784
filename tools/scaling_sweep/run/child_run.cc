#include "tools/scaling_sweep/run/child_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/support/process.h"

namespace hvdlite::scaling_sweep {
namespace {

using Clock = std::chrono::steady_clock;

absl::StatusOr<pid_t> StartChild(const Command& command, int log) {
  const base::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  absl::StatusOr<pid_t> child =
      base::StartProcess({.command = command.words,
                          .environment = base::EnvironmentEntries(
                              base::ProcessEnvironment(), command.environment),
                          .input = nothing.get(),
                          .output = log,
                          .errors = log,
                          .own_group = true,
                          .signal_on_death = SIGTERM});
  if (child.ok()) return child;
  return absl::FailedPreconditionError(absl::StrCat(
      child.status().message(), "; give its path, or add its folder to PATH"));
}

// A process that was started, and its end.
struct Child {
  pid_t id = -1;
  base::Descriptor end;  // a pidfd; none on kernels before 5.3

  // Leaves it to be reaped.
  bool HasEnded() const {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(id), &info,
                  WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == id;
  }
};

enum class Event { kEnd, kStop, kTime };

// Waits for the end of `child`, a stop signal (unless it is -1) or `until`.
Event WaitFor(const Child& child, int stop, Clock::time_point until) {
  constexpr int64_t kPauseMs = 20;  // between looks, where there is no pidfd
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Event::kTime;
    pollfd waited[2] = {{child.end.get(), POLLIN, 0}, {stop, POLLIN, 0}};
    const int64_t timeout = std::min<int64_t>(
        left.count(), child.end.valid() ? int64_t{1} << 30 : kPauseMs);
    poll(waited, 2, static_cast<int>(timeout));
    if (child.HasEnded()) return Event::kEnd;
    if (waited[1].revents != 0) return Event::kStop;
  }
}

Clock::time_point After(absl::Duration duration) {
  return Clock::now() + absl::ToChronoNanoseconds(duration);
}

}  // namespace

absl::StatusOr<ChildEnd> RunChild(const Command& command,
                                  const std::string& log_file,
                                  absl::Duration limit, absl::Duration grace,
                                  const base::SignalPipe& stop) {
  const base::Descriptor log(
      open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (log.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write '", log_file, "': ", std::strerror(errno)));
  }
  const Clock::time_point start = Clock::now();
  Child child;
  HVDLITE_ASSIGN_OR_RETURN(child.id, StartChild(command, log.get()));
  child.end =
      base::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, child.id, 0)));
  ChildEnd result;
  const Event event = WaitFor(child, stop.descriptor(), After(limit));
  if (event == Event::kStop) result.stopped_by = stop.Next();
  if (event == Event::kTime) result.timed_out = true;
  if (event != Event::kEnd) {
    kill(-child.id, SIGTERM);
    WaitFor(child, /*stop=*/-1, After(grace));
  }
  // What is left of the group after its leader's end, or does not heed SIGTERM.
  // The leader is not reaped yet, so that the number is still the group's.
  kill(-child.id, SIGKILL);
  result.exit_code = base::WaitForExit(child.id);
  result.duration = absl::FromChrono(Clock::now() - start);
  // A signal to both, as of a batch system, may end the child first.
  if (event == Event::kEnd && result.exit_code != 0) {
    result.stopped_by = stop.Next();
  }
  return result;
}

}  // namespace hvdlite::scaling_sweep
