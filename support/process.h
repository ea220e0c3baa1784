// Starts programs in child processes, and tells how they ended; and the signals
// that end this one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/environment.h"

namespace hvdlite::support {

struct ProcessOptions {
  std::vector<std::string> command;      // the program's name, then arguments
  std::vector<std::string> environment;  // "NAME=VALUE" each
  // The file to run; by default the command's first word. Without a slash it is
  // searched in PATH.
  std::string program = {};
  // What becomes the standard streams; -1: this process's own.
  int input = -1;
  int output = -1;
  int errors = -1;
  // In a process group of its own.
  bool own_group = false;
  // What it gets when the thread that starts it ends, however that ends; 0:
  // nothing.
  int signal_on_death = 0;
  // In the child, just before it becomes the program; an error ends the child.
  // For single-threaded programs only: other threads' locks are not released.
  std::function<absl::Status()> before_exec = {};
  // In this process, after that: the child becomes the program once it has
  // returned. Whatever the program does, this has been done.
  std::function<void(pid_t child)> before_program = {};
};

// Returns once the child has become the program. From then on SIGCHLD is not
// ignored, so that children can be waited for. Signals that this process
// catches have their defaults there. Errors: NotFound and PermissionDenied of
// the program ("cannot start PROGRAM: ..."), what before_exec returned
// (FailedPrecondition), Internal if the system refuses.
absl::StatusOr<pid_t> StartProcess(const ProcessOptions& options);

// What a shell says of a waitpid() status: the exit code, or 128 + signal.
int ExitCode(int wait_status);

// Waits for the end of a child; its exit code as above, or 1 if it cannot be
// known.
int WaitForExit(pid_t child);

// The signals that end a program, as bytes in a pipe. While it lives, SIGHUP,
// SIGINT, SIGQUIT and SIGTERM do not end this process but can be read here, on
// whichever thread they arrive. Those that were ignored (nohup's SIGHUP) stay
// so. Processes started meanwhile have the signals' defaults. One at a time.
class SignalPipe {
 public:
  // Throws std::runtime_error if the system gives no pipe.
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable, for poll(), when a signal has arrived.
  int descriptor() const { return pipe_.reader.get(); }

  // The next signal that has arrived; nullopt: none. Does not block.
  std::optional<int> Next() const;

 private:
  base::Pipe pipe_;
};

// Whether `path` is a file that this process may execute.
bool IsExecutable(const std::string& path);

// Whether there is anything at `path` that this process sees.
bool Exists(const std::string& path);

// As a shell finds it: `program` itself if there is a slash in it, else the
// first file of its name that `is_executable` in the folders of PATH. NotFound,
// with what to do, where there is none.
absl::StatusOr<std::string> PathOfProgram(
    absl::string_view program, const base::Environment& environment,
    const std::function<bool(const std::string&)>& is_executable = IsExecutable,
    const std::function<bool(const std::string&)>& exists = Exists);

}  // namespace hvdlite::support
