#include "tools/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/support/process.h"

namespace hvdlite::launch {
namespace {

using base::Descriptor;
using base::Pipe;

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
  cfmakeraw(&settings);  // bytes as they are
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

bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}

// Blocks signals and returns a descriptor that tells of them; restores the
// mask. Signals that are ignored (nohup's SIGHUP) stay so, in the child, too.
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
    signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody can be waited for
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

// One read; false at the end of the stream or if nothing is there.
bool ReadSome(Descriptor& reader,
              const std::function<void(absl::string_view)>& callback) {
  char buffer[65536];
  const ssize_t count = read(reader.get(), buffer, sizeof(buffer));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count <= 0) {  // EIO: nobody has the terminal open any more
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
    // The terminal's go to the whole foreground group.
    const bool has_it = signal.ssi_code == SI_KERNEL && !options.own_group;
    if (has_it) continue;
    const bool ends_it = number != SIGUSR1 && number != SIGUSR2;
    kill(options.own_group && ends_it ? -child : child, number);
  }
}

}  // namespace

void WriteAll(int descriptor, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready = {.fd = descriptor, .events = POLLOUT, .revents = 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

absl::StatusOr<ChildEnd> RunChild(const ChildOptions& options) {
  HVDLITE_ASSIGN_OR_RETURN(Pipe output, OpenStream(options.output));
  HVDLITE_ASSIGN_OR_RETURN(Pipe errors, OpenStream(options.errors));
  const SignalQueue signals;
  HVDLITE_ASSIGN_OR_RETURN(
      const pid_t child,
      base::StartProcess({.command = options.command,
                          .environment = options.environment,
                          .output = output.writer.get(),
                          .errors = errors.writer.get(),
                          .own_group = options.own_group,
                          .signal_on_death = options.signal_on_death,
                          .before_exec = [&] {
                            signals.Restore();
                            return options.before_exec ? options.before_exec()
                                                       : absl::OkStatus();
                          }}));
  output.writer = Descriptor();
  errors.writer = Descriptor();
  ChildEnd end;
  if (options.on_started) options.on_started(child);

  for (const Descriptor* reader : {&output.reader, &errors.reader}) {
    if (reader->valid()) fcntl(reader->get(), F_SETFL, O_NONBLOCK);
  }
  bool ended = false;
  while (!ended) {
    std::array<pollfd, 3> ready = {{
        {.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
        {.fd = output.reader.get(), .events = POLLIN, .revents = 0},
        {.fd = errors.reader.get(), .events = POLLIN, .revents = 0},
    }};
    poll(ready.data(), ready.size(), -1);
    PassSignalsOn(signals, child, options, end);
    int status = 0;
    ended = waitpid(child, &status, WNOHANG) == child;
    if (ended) end.exit_code = base::ExitCode(status);
    // Once it has ended: all that is left in the streams, which a child of its
    // own may hold open.
    while (output.reader.valid() &&
           ReadSome(output.reader, options.on_output) && ended) {
    }
    while (errors.reader.valid() &&
           ReadSome(errors.reader, options.on_errors) && ended) {
    }
  }
  if (options.own_group && end.ended_by_signal != 0) kill(-child, SIGKILL);
  return end;
}

absl::StatusOr<CapturedOutput> CaptureOutput(
    const std::vector<std::string>& command) {
  CapturedOutput captured;
  const auto keep = [&](absl::string_view text) {
    captured.text.append(text.data(), text.size());
  };
  HVDLITE_ASSIGN_OR_RETURN(const ChildEnd end,
                           RunChild({.command = command,
                                     .environment = base::EnvironmentEntries(
                                         base::ProcessEnvironment()),
                                     .output = Stream::kPipe,
                                     .errors = Stream::kPipe,
                                     .on_output = keep,
                                     .on_errors = keep}));
  // The signals' former actions are restored: this process ends, or ignores it.
  if (end.ended_by_signal != 0) raise(end.ended_by_signal);
  captured.status = end.exit_code;
  return captured;
}

}  // namespace hvdlite::launch
