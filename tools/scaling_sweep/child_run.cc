#include "tools/scaling_sweep/child_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
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

namespace hvdlite::scaling_sweep {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> EnvironmentWith(const Variables& variables) {
  const base::Environment own = base::ProcessEnvironment();
  std::vector<std::string> entries;
  for (const std::string& name : own.names()) {
    const bool replaced = std::any_of(
        variables.begin(), variables.end(),
        [&](const auto& variable) { return variable.first == name; });
    if (!replaced) {
      entries.push_back(absl::StrCat(name, "=", own.get(name).value_or("")));
    }
  }
  for (const auto& [name, value] : variables) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

// For exec, which takes arrays that end with a null pointer.
std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What a child needs to become the program: it must not allocate memory.
struct Start {
  char* const* words = nullptr;
  char* const* environment = nullptr;
  int log = -1;
  const sigset_t* mask = nullptr;
  pid_t parent = -1;
  int failure = -1;  // for an errno
};

// Everything between fork and exec.
[[noreturn]] void BecomeProgram(const Start& start) {
  setpgid(0, 0);
  // Ended with its parent, even by SIGKILL, and if that was before this call.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != start.parent) _exit(1);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 &&
      dup2(start.log, STDOUT_FILENO) >= 0 &&
      dup2(start.log, STDERR_FILENO) >= 0) {
    sigprocmask(SIG_SETMASK, start.mask, nullptr);
    execvpe(start.words[0], start.words, start.environment);
  }
  const int error = errno;
  (void)!write(start.failure, &error, sizeof error);
  _exit(127);
}

// 0, or the errno that a child has written before its end.
int ReadFailure(int descriptor) {
  int failure = 0;
  ssize_t count = 0;
  do {
    count = read(descriptor, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof failure) ? failure : 0;
}

absl::StatusOr<pid_t> StartChild(const Command& command, int log,
                                 const sigset_t& mask) {
  const auto fail = [&command](int failure) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start '", command.words.front(), "': ", std::strerror(failure),
        "; give its path, or add its folder to PATH"));
  };
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(errno);
  const base::Descriptor reader(ends[0]);
  base::Descriptor writer(ends[1]);
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = EnvironmentWith(command.environment);
  const std::vector<char*> word_pointers = PointersTo(words);
  const std::vector<char*> environment_pointers = PointersTo(environment);
  const Start start = {.words = word_pointers.data(),
                       .environment = environment_pointers.data(),
                       .log = log,
                       .mask = &mask,
                       .parent = getpid(),
                       .failure = writer.get()};
  const pid_t child = fork();
  if (child < 0) return fail(errno);
  if (child == 0) BecomeProgram(start);
  writer = base::Descriptor();
  const int failure = ReadFailure(reader.get());
  if (failure == 0) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return fail(failure);
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
                                  const StopSignals& stop) {
  const base::Descriptor log(
      open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (log.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write '", log_file, "': ", std::strerror(errno)));
  }
  const Clock::time_point start = Clock::now();
  Child child;
  HVDLITE_ASSIGN_OR_RETURN(child.id,
                           StartChild(command, log.get(), stop.former_mask()));
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
  int status = 0;
  while (waitpid(child.id, &status, 0) < 0 && errno == EINTR) {
  }
  result.duration = absl::FromChrono(Clock::now() - start);
  result.exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace hvdlite::scaling_sweep
