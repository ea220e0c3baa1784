// Child processes: one that is run to its end, one whose output is wanted, and
// one of several that run at once.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/process.h"

namespace hvdlite::support {

enum class Stream {
  kInherited,  // this process's own
  kPipe,       // to the callback
  kTerminal,   // to the callback; the child writes line by line, as it would on
               // a terminal
};

struct ChildOptions {
  std::vector<std::string> command;      // searched in PATH
  std::vector<std::string> environment;  // "NAME=VALUE"
  // In a process group of its own: signals that a launcher sends to this
  // process's group reach the child once, by this process. What ends the child
  // goes to its whole group, of which nothing is left then.
  bool own_group = false;
  // Sent to the child when this process ends first, however it ends.
  int signal_on_death = 0;
  Stream output = Stream::kInherited;
  Stream errors = Stream::kInherited;
  std::function<void(absl::string_view)> on_output = {};
  std::function<void(absl::string_view)> on_errors = {};
  // A file for both, made anew, instead; standard input is empty then.
  std::string log_file = {};
  // In the child, just before it becomes the program. It must not fail half
  // way: an error ends the child.
  std::function<absl::Status()> before_exec = {};
  // In this process, before the child becomes the program, which may fail yet.
  std::function<void(pid_t)> before_program = {};
  // Takes the signals that would be passed on, instead, with the child's id:
  // SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that somebody has sent.
  std::function<void(int, pid_t)> on_signal = {};
  // In this process, about every second while the child runs.
  std::function<void(pid_t)> every_second = {};
  // A child that takes longer than `limit` gets SIGTERM, and SIGKILL after
  // `grace`.
  absl::Duration limit = absl::InfiniteDuration();
  absl::Duration grace = absl::InfiniteDuration();
  // A signal that is read from it ends the child in the same way, and none is
  // passed on; then nothing of the child's own group outlives the child.
  const SignalPipe* stop = nullptr;
};

struct ChildEnd {
  int exit_code = 0;  // or 128 + signal, as shells have it
  // What would have ended this process meanwhile (SIGINT, SIGTERM, SIGHUP), or
  // was read from `stop` before a success; 0: none.
  int ended_by_signal = 0;
  bool timed_out = false;
  absl::Duration duration = absl::ZeroDuration();
};

// Runs a child to its end. Without `stop`, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
// SIGUSR2 that somebody sends to this process are passed on; those of the
// terminal, which reach the child anyway, only where it has a group of its own.
// Single-threaded programs only. Errors: the program cannot be started
// (NotFound, PermissionDenied), `log_file` cannot be written or before_exec
// failed (FailedPrecondition), or the system refuses.
absl::StatusOr<ChildEnd> RunChild(const ChildOptions& options);

struct CapturedOutput {
  int status = 0;    // an exit code, or 128 + signal
  std::string text;  // standard output and errors
};

// Runs a short command in this environment with `changes`; an error only if it
// cannot be started.
absl::StatusOr<CapturedOutput> CaptureOutput(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& changes = {});

// A child whose output the caller reads, while it does other things.
class ChildProcess {
 public:
  // Runs `program` with `arguments` (the first is its name) and `environment`
  // ("NAME=value"), bound to the CPUs of the calling thread. Throws
  // std::runtime_error if the system refuses.
  ChildProcess(const std::string& program, std::vector<std::string> arguments,
               std::vector<std::string> environment);
  // Kills the process if Wait() has not returned.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Standard output and error, to read from.
  int output() const { return output_.get(); }
  int error() const { return error_.get(); }

  void Signal(int signal) const;

  // Waits for its end; call it once. Returns its exit code, or 128 + N if
  // signal N has ended it, as shells do.
  int Wait();

 private:
  pid_t id_ = -1;  // -1 after its end
  base::Descriptor output_;
  base::Descriptor error_;
};

}  // namespace hvdlite::support
