#include "tools/hvdliterun/rank/rank_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/status_macros.h"
#include "support/core_use.h"
#include "tools/hvdliterun/rank/binding.h"

namespace hvdlite::launch {
namespace {

// A pipe that stays open here would block the reader of its other end.
void CloseAllBut(int one) {
  const int null = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(null, stream);
  }
  std::vector<int> open_ones;
  if (DIR* directory = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(directory)) {
      open_ones.push_back(atoi(entry->d_name));
    }
    closedir(directory);
  }
  for (const int descriptor : open_ones) {
    if (descriptor > STDERR_FILENO && descriptor != one) close(descriptor);
  }
}

// The parent of `process`; nullopt: /proc does not show it.
std::optional<pid_t> ParentOf(pid_t process) {
  std::optional<support::ProcessTime> stat;
  base::ContainExceptions([&] {
    stat = support::ParseProcessStat(
        support::SystemFiles()
            .Text(absl::StrCat("/proc/", process, "/stat"))
            .value_or(""));
  });
  return stat.has_value() ? std::optional(stat->parent) : std::nullopt;
}

// Whether the process at the other end of the pipe `alive` ends within this
// time (-1: no limit).
bool EndsWithin(int alive, int64_t milliseconds) {
  pollfd watched = {.fd = alive, .events = POLLIN, .revents = 0};
  int ready = -1;
  while (ready < 0) ready = poll(&watched, 1, static_cast<int>(milliseconds));
  return ready > 0;
}

[[noreturn]] void Reap(const GroupReaper::Options& options, pid_t parent,
                       int alive) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();  // launchers send signals to process groups
  alive = fcntl(alive, F_DUPFD, STDERR_FILENO + 1);
  CloseAllBut(alive);
  // In a container /proc may show other processes.
  const bool sees_parents = ParentOf(getpid()) == parent;
  const pid_t launcher = options.launcher.value_or(0);
  constexpr int64_t kSecondMs = 1000;
  while (!EndsWithin(alive, options.launcher.has_value() ? kSecondMs : -1)) {
    if (!sees_parents || ParentOf(parent).value_or(launcher) == launcher) {
      continue;
    }
    kill(parent, SIGTERM);
    if (!EndsWithin(alive, absl::ToInt64Milliseconds(options.grace))) {
      kill(parent, SIGKILL);
    }
    break;
  }
  kill(-options.group, SIGKILL);
  _exit(0);
}

// Whether this mask in /proc/PID/status, such as "SigCgt", contains the signal.
bool HasSignal(const std::string& status, const char* mask, int number) {
  const std::string digits = support::ValueOf(status, mask);
  const uint64_t bits = std::strtoull(digits.c_str(), nullptr, 16);
  return ((bits >> (number - 1)) & 1) != 0;
}

}  // namespace

void PassSignal(int number, pid_t program, const support::SystemFiles& files) {
  if (number != SIGUSR1 && number != SIGUSR2) {
    kill(-program, number);
    return;
  }
  bool heeded = false;
  for (const pid_t process : ProcessesOfGroup(program, files)) {
    const std::string status =
        files.Text(absl::StrCat("/proc/", process, "/status")).value_or("");
    if (HasSignal(status, "SigCgt", number)) {
      kill(process, number);
      heeded = true;
    }
    heeded = heeded || HasSignal(status, "SigIgn", number);
  }
  if (!heeded && number == SIGUSR1) kill(-program, SIGTERM);
}

absl::StatusOr<GroupReaper> GroupReaper::Start(const Options& options) {
  HVDLITE_ASSIGN_OR_RETURN(base::Pipe pipe, base::MakePipe());
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (process == 0) {
    pipe.writer = base::Descriptor();
    Reap(options, parent, pipe.reader.get());
  }
  return GroupReaper(process, std::move(pipe.writer));
}

void GroupReaper::Release() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace hvdlite::launch
