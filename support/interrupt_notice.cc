#include "support/interrupt_notice.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/environment.h"
#include "base/launcher_environment.h"

namespace hvdlite::support {
namespace {

// Signal handlers can access only globals.
char line[512];
size_t line_bytes = 0;

// Calls only async-signal-safe functions: signal-safety(7). The signal's
// default action is already restored, and ends the process after this.
void TellAndEnd(int number) {
  const int former_errno = errno;
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line, line_bytes);
  raise(number);
  errno = former_errno;
}

}  // namespace

void TellIfInterrupted(const std::string& program, const std::string& means) {
  const base::Environment environment = base::ProcessEnvironment();
  if (!base::IsFirstOfLauncher(environment)) return;
  const std::string text = program + ": interrupted: " + means + "\n";
  line_bytes = std::min(text.size(), sizeof(line));
  std::memcpy(line, text.data(), line_bytes);
  struct sigaction action = {};
  action.sa_handler = TellAndEnd;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction former = {};
    sigaction(number, nullptr, &former);
    if (former.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
  }
}

}  // namespace hvdlite::support
