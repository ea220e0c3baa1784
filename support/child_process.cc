#include "support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/status_macros.h"

namespace hvdlite::support {
namespace {

using base::Descriptor;
using base::Pipe;
using Clock = std::chrono::steady_clock;

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

absl::StatusOr<Pipe> OpenTerminal() {
  Pipe ends;
  ends.reader = Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[128] = {};
  if (!ends.reader.valid() || grantpt(ends.reader.get()) != 0 ||
      unlockpt(ends.reader.get()) != 0 ||
      ptsname_r(ends.reader.get(), name, sizeof(name)) != 0) {
    return base::MakePipe();  // a container without /dev/pts
  }
  ends.writer = Descriptor(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings = {};
  if (!ends.writer.valid() || tcgetattr(ends.writer.get(), &settings) != 0) {
    return base::MakePipe();
  }
  cfmakeraw(&settings);  // no translation of bytes
  tcsetattr(ends.writer.get(), TCSANOW, &settings);
  return ends;
}

// The two ends of a stream; both invalid for an inherited one.
absl::StatusOr<Pipe> OpenStream(Stream stream) {
  switch (stream) {
    case Stream::kInherited:
      return Pipe();
    case Stream::kPipe:
      return base::MakePipe();
    case Stream::kTerminal:
      return OpenTerminal();
  }
  return Pipe();
}

// Standard streams for a log file; all invalid without a log file.
struct LogStreams {
  Descriptor nothing;
  Descriptor file;
};

absl::StatusOr<LogStreams> OpenLog(const std::string& path) {
  LogStreams log;
  if (path.empty()) return log;
  log.nothing = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  log.file = Descriptor(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (log.file.valid()) return log;
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write '", path, "': ", std::strerror(errno)));
}

Clock::time_point After(Clock::time_point start, absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return Clock::time_point::max();
  return start + absl::ToChronoNanoseconds(duration);
}

// Timeout for poll(): until `until`, but at most `most`.
int TimeoutMs(Clock::time_point until, int64_t most) {
  int64_t left = INT_MAX;
  if (until != Clock::time_point::max()) {
    left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now())
               .count();
  } else if (most == INT_MAX) {
    return -1;
  }
  return static_cast<int>(std::clamp<int64_t>(left, 0, most));
}

// Does not reap the child.
bool HasEnded(pid_t child) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(child), &info,
                WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

// Blocks signals, and returns a descriptor that reads them. The destructor
// restores the mask. Ignored signals (nohup's SIGHUP) stay ignored, also in the
// child.
class SignalQueue {
 public:
  SignalQueue() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : kPassedOn) {
      if (!IsIgnored(number)) sigaddset(&signals, number);
    }
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &former_);
    signal(SIGCHLD, SIG_DFL);  // if ignored, waitpid() fails
    former_pipe_ = signal(SIGPIPE, SIG_IGN);
    descriptor_ =
        Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalQueue() { Restore(); }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  void Restore() const {
    signal(SIGPIPE, former_pipe_);
    sigprocmask(SIG_SETMASK, &former_, nullptr);
  }
  int descriptor() const { return descriptor_.get(); }

 private:
  sigset_t former_;
  sighandler_t former_pipe_ = SIG_DFL;
  Descriptor descriptor_;
};

// Reads once. False at the end of the stream or if there is no data.
bool ReadSome(Descriptor& reader,
              const std::function<void(absl::string_view)>& callback) {
  char buffer[65536];
  const ssize_t count = read(reader.get(), buffer, sizeof(buffer));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {  // EIO: the terminal is closed
    reader = Descriptor();
    return false;
  }
  if (callback) callback(absl::string_view(buffer, static_cast<size_t>(count)));
  return true;
}

void PassSignalsOn(const SignalQueue& queue, pid_t child,
                   const ChildOptions& options, ChildEnd& end) {
  signalfd_siginfo signal = {};
  while (read(queue.descriptor(), &signal, sizeof(signal)) ==
         static_cast<ssize_t>(sizeof(signal))) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number == SIGCHLD) continue;
    if (number != SIGUSR1 && number != SIGUSR2) end.ended_by_signal = number;
    // Signals from the terminal go to the whole foreground group.
    const bool has_it = signal.ssi_code == SI_KERNEL && !options.own_group;
    if (has_it) continue;
    if (options.on_signal) {
      options.on_signal(number, child);
      continue;
    }
    const bool ends_it = number != SIGUSR1 && number != SIGUSR2;
    kill(options.own_group && ends_it ? -child : child, number);
  }
}

template <typename T>
T ValueOrThrow(absl::StatusOr<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(std::string(result.status().message()));
  }
  return *std::move(result);
}

}  // namespace

absl::StatusOr<ChildEnd> RunChild(const ChildOptions& options) {
  HVDLITE_ASSIGN_OR_RETURN(Pipe output, OpenStream(options.output));
  HVDLITE_ASSIGN_OR_RETURN(Pipe errors, OpenStream(options.errors));
  HVDLITE_ASSIGN_OR_RETURN(const LogStreams log, OpenLog(options.log_file));
  std::optional<SignalQueue> signals;
  if (options.stop == nullptr) signals.emplace();
  const Clock::time_point start = Clock::now();
  HVDLITE_ASSIGN_OR_RETURN(
      const pid_t child,
      StartProcess(
          {.command = options.command,
           .environment = options.environment,
           .input = log.nothing.get(),
           .output = log.file.valid() ? log.file.get() : output.writer.get(),
           .errors = log.file.valid() ? log.file.get() : errors.writer.get(),
           .own_group = options.own_group,
           .signal_on_death = options.signal_on_death,
           .before_exec =
               [&] {
                 if (signals.has_value()) signals->Restore();
                 return options.before_exec ? options.before_exec()
                                            : absl::OkStatus();
               },
           .before_program = options.before_program}));
  // Invalid on kernels before 5.3. If signals are queued, SIGCHLD also wakes.
  const Descriptor child_end(
      static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  constexpr int64_t kPauseMs = 20;  // poll interval without a wake-up
  constexpr int64_t kTickMs = 1000;
  Clock::time_point next_tick = start;
  const bool is_told = child_end.valid() || signals.has_value();
  output.writer = Descriptor();
  errors.writer = Descriptor();

  for (const Descriptor* reader : {&output.reader, &errors.reader}) {
    if (reader->valid()) fcntl(reader->get(), F_SETFL, O_NONBLOCK);
  }
  ChildEnd end;
  Clock::time_point until = After(start, options.limit);
  bool asked_to_end = false;
  bool ended = false;
  while (!ended) {
    const int source = signals.has_value() ? signals->descriptor()
                       : asked_to_end      ? -1
                                           : options.stop->descriptor();
    std::array<pollfd, 4> ready = {{
        {.fd = source, .events = POLLIN, .revents = 0},
        {.fd = child_end.get(), .events = POLLIN, .revents = 0},
        {.fd = output.reader.get(), .events = POLLIN, .revents = 0},
        {.fd = errors.reader.get(), .events = POLLIN, .revents = 0},
    }};
    const int64_t most = !is_told               ? kPauseMs
                         : options.every_second ? kTickMs
                                                : INT_MAX;
    poll(ready.data(), ready.size(), TimeoutMs(until, most));
    if (options.every_second && Clock::now() >= next_tick) {
      options.every_second(child);
      next_tick = Clock::now() + std::chrono::milliseconds(kTickMs);
    }
    if (signals.has_value()) PassSignalsOn(*signals, child, options, end);
    ended = HasEnded(child);
    // After the child's end: reads all that is left. A process that the child
    // started may still hold the streams open.
    while (output.reader.valid() &&
           ReadSome(output.reader, options.on_output) && ended) {
    }
    while (errors.reader.valid() &&
           ReadSome(errors.reader, options.on_errors) && ended) {
    }
    if (ended) break;
    const bool is_late = Clock::now() >= until;
    const bool is_stopped = !signals.has_value() && ready[0].revents != 0;
    if (!is_late && !is_stopped) continue;
    if (asked_to_end) break;  // it ignores SIGTERM
    asked_to_end = true;
    end.timed_out = is_late;
    if (is_stopped) end.ended_by_signal = options.stop->Next().value_or(0);
    kill(options.own_group ? -child : child, SIGTERM);
    until = After(Clock::now(), options.grace);
  }
  // Kills the rest of the group after its leader's end. The leader is not
  // reaped yet, so the id still belongs to the group.
  if (options.own_group &&
      (options.stop != nullptr || asked_to_end || end.ended_by_signal != 0)) {
    kill(-child, SIGKILL);
  } else if (!ended) {
    kill(child, SIGKILL);
  }
  end.exit_code = WaitForExit(child);
  end.duration = absl::FromChrono(Clock::now() - start);
  // The child may end first if both receive the signal, as from a batch system.
  if (options.stop != nullptr && !asked_to_end && end.exit_code != 0) {
    end.ended_by_signal = options.stop->Next().value_or(0);
  }
  return end;
}

absl::StatusOr<CapturedOutput> CaptureOutput(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& changes) {
  CapturedOutput captured;
  const auto keep = [&](absl::string_view text) {
    captured.text.append(text.data(), text.size());
  };
  HVDLITE_ASSIGN_OR_RETURN(const ChildEnd end,
                           RunChild({.command = command,
                                     .environment = base::EnvironmentEntries(
                                         base::ProcessEnvironment(), changes),
                                     .output = Stream::kPipe,
                                     .errors = Stream::kPipe,
                                     .on_output = keep,
                                     .on_errors = keep}));
  // The former signal actions are restored: this process ends or ignores it.
  if (end.ended_by_signal != 0) raise(end.ended_by_signal);
  captured.status = end.exit_code;
  return captured;
}

ChildProcess::ChildProcess(const std::string& program,
                           std::vector<std::string> arguments,
                           std::vector<std::string> environment) {
  Pipe output = ValueOrThrow(base::MakePipe());
  Pipe error = ValueOrThrow(base::MakePipe());
  id_ = ValueOrThrow(StartProcess({.command = std::move(arguments),
                                   .environment = std::move(environment),
                                   .program = program,
                                   .output = output.writer.get(),
                                   .errors = error.writer.get()}));
  output_ = std::move(output.reader);
  error_ = std::move(error.reader);
}

ChildProcess::~ChildProcess() {
  if (id_ < 0) return;
  Signal(SIGKILL);
  Wait();
}

void ChildProcess::Signal(int signal) const { kill(id_, signal); }

int ChildProcess::Wait() { return WaitForExit(std::exchange(id_, -1)); }

}  // namespace hvdlite::support
