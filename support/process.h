// Starts programs in child processes and waits for them. Finds programs in
// PATH. Catches the signals that end this process.
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
  // The file to run; by default the first word of `command`. A name without a
  // slash is searched in PATH.
  std::string program = {};
  // Standard streams of the child; -1: inherited.
  int input = -1;
  int output = -1;
  int errors = -1;
  // Runs the child in its own process group.
  bool own_group = false;
  // Signal for the child when the thread that started it ends, for any reason;
  // 0: none.
  int signal_on_death = 0;
  // Called in the child just before exec; an error ends the child. For
  // single-threaded programs only: locks of other threads stay locked.
  std::function<absl::Status()> before_exec = {};
  // Called in this process after before_exec. The child waits for its return
  // before exec.
  std::function<void(pid_t child)> before_program = {};
};

// Returns after exec has succeeded. From then on SIGCHLD is not ignored, so
// children can be waited for. The child has default actions for signals that
// this process catches. Errors: NotFound and PermissionDenied for the program
// ("cannot start PROGRAM: ..."), the error of before_exec (FailedPrecondition),
// Internal if the system refuses.
absl::StatusOr<pid_t> StartProcess(const ProcessOptions& options);

// The exit code that a shell shows for a waitpid() status: the exit code, or
// 128 + signal.
int ExitCode(int wait_status);

// Waits for the end of a child. Returns its exit code as above, or 1 if it is
// unknown.
int WaitForExit(pid_t child);

// Receives signals through a pipe. While it exists, SIGHUP, SIGINT, SIGQUIT and
// SIGTERM do not end this process but can be read here, whichever thread they
// reach. Ignored signals (nohup's SIGHUP) stay ignored. Processes started
// meanwhile have default actions. Only one may exist.
class SignalPipe {
 public:
  // Throws std::runtime_error if the system refuses a pipe.
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

// Whether `path` exists and is visible to this process.
bool Exists(const std::string& path);

// Finds a program as a shell does: `program` itself if it contains a slash,
// otherwise the first file of that name in the directories of PATH that
// `is_executable`. NotFound says what to do.
absl::StatusOr<std::string> PathOfProgram(
    absl::string_view program, const base::Environment& environment,
    const std::function<bool(const std::string&)>& is_executable = IsExecutable,
    const std::function<bool(const std::string&)>& exists = Exists);

}  // namespace hvdlite::support
