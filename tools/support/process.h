// Starts programs in child processes, and tells how they ended.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hvdlite::base {

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

}  // namespace hvdlite::base
