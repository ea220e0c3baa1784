// Runs child processes: RunChild() to the end, CaptureOutput() for the output,
// ChildProcess for several at once.
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
  kTerminal,   // to the callback, through a terminal: the child writes by lines
};

struct ChildOptions {
  std::vector<std::string> command;      // searched in PATH
  std::vector<std::string> environment;  // "NAME=VALUE"
  // Runs the child in its own process group. Then signals that a launcher sends
  // to this process's group reach the child once, through this process. Signals
  // that end the child go to its whole group, so no process of it remains.
  bool own_group = false;
  // Sent to the child if this process ends first, for any reason.
  int signal_on_death = 0;
  Stream output = Stream::kInherited;
  Stream errors = Stream::kInherited;
  std::function<void(absl::string_view)> on_output = {};
  std::function<void(absl::string_view)> on_errors = {};
  // A file that is truncated and receives output and errors instead; standard
  // input is then empty.
  std::string log_file = {};
  // Called in the child just before exec. An error ends the child.
  std::function<absl::Status()> before_exec = {};
  // Called in this process before the child's exec, which may still fail.
  std::function<void(pid_t)> before_program = {};
  // Called with signal and child id instead of forwarding SIGINT, SIGTERM,
  // SIGHUP, SIGUSR1 and SIGUSR2.
  std::function<void(int, pid_t)> on_signal = {};
  // Called in this process about every second while the child runs.
  std::function<void(pid_t)> every_second = {};
  // A child that runs longer than `limit` gets SIGTERM, and after `grace`
  // SIGKILL.
  absl::Duration limit = absl::InfiniteDuration();
  absl::Duration grace = absl::InfiniteDuration();
  // A signal read from it ends the child in the same way, and no signals are
  // forwarded. No process of the child's own group outlives the child.
  const SignalPipe* stop = nullptr;
};

struct ChildEnd {
  int exit_code = 0;  // or 128 + signal, as in shells
  // The signal that would have ended this process (SIGINT, SIGTERM, SIGHUP), or
  // that was read from `stop` before a success; 0: none.
  int ended_by_signal = 0;
  bool timed_out = false;
  absl::Duration duration = absl::ZeroDuration();
};

// Runs a child to its end. Without `stop`, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and
// SIGUSR2 to this process are forwarded to the child. Signals from the terminal
// reach the child anyway; they are forwarded only if it has its own group. For
// single-threaded programs only.
//
// Errors: NotFound or PermissionDenied if the program cannot be started;
// FailedPrecondition if `log_file` cannot be written or before_exec failed;
// others if the system refuses.
absl::StatusOr<ChildEnd> RunChild(const ChildOptions& options);

struct CapturedOutput {
  int status = 0;    // an exit code, or 128 + signal
  std::string text;  // standard output and errors
};

// Runs a short command in this environment with `changes`. An error only if it
// cannot be started.
absl::StatusOr<CapturedOutput> CaptureOutput(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& changes = {});

// A child process whose output the caller reads while it does other work.
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

  // Descriptors to read its standard output and error.
  int output() const { return output_.get(); }
  int error() const { return error_.get(); }

  void Signal(int signal) const;

  // Waits for its end; call it once. Returns its exit code, or 128 + N if
  // signal N ended it, as shells do.
  int Wait();

 private:
  pid_t id_ = -1;  // -1 after its end
  base::Descriptor output_;
  base::Descriptor error_;
};

}  // namespace hvdlite::support
