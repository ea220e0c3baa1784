// Child processes: one whose signals and output this process passes on, and one
// whose output it wants.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::launch {

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
  // In the child, just before it becomes the program. It must not fail half
  // way: an error ends the child.
  std::function<absl::Status()> before_exec = {};
  // In this process, once the child has become the program.
  std::function<void(pid_t)> on_started = {};
};

struct ChildEnd {
  int exit_code = 0;  // or 128 + signal, as shells have it
  // SIGINT, SIGTERM or SIGHUP that this process got meanwhile; 0: none.
  int ended_by_signal = 0;
};

// Runs a child to its end. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that
// somebody sends to this process are passed on; those of the terminal, which
// reach the child anyway, only where it has a group of its own. Single-threaded
// programs only. Errors: the program cannot be started (NotFound,
// PermissionDenied), before_exec failed, or the system refuses.
absl::StatusOr<ChildEnd> RunChild(const ChildOptions& options);

struct CapturedOutput {
  int status = 0;    // an exit code, or 128 + signal
  std::string text;  // standard output and errors
};

// Runs a short command; an error only if it cannot be started.
absl::StatusOr<CapturedOutput> CaptureOutput(
    const std::vector<std::string>& command);

// Writes all of `text`; gives up silently if nobody reads any more.
void WriteAll(int descriptor, absl::string_view text);

}  // namespace hvdlite::launch
