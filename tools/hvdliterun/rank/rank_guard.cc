#include "tools/hvdliterun/rank/rank_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/rank/binding.h"

namespace hvdlite::launch {
namespace {

// A pipe that stays open here would hold up whoever reads its other end.
void CloseAllBut(int one) {
  const int null = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(null, stream);
  }
  std::vector<int> open_ones;
  if (DIR* folder = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(folder)) {
      open_ones.push_back(atoi(entry->d_name));
    }
    closedir(folder);
  }
  for (const int descriptor : open_ones) {
    if (descriptor > STDERR_FILENO && descriptor != one) close(descriptor);
  }
}

[[noreturn]] void Reap(pid_t group, int alive) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();  // launchers signal the process groups that they started
  alive = fcntl(alive, F_DUPFD, STDERR_FILENO + 1);
  CloseAllBut(alive);
  char byte = 0;  // never comes
  while (read(alive, &byte, 1) < 0 && errno == EINTR) {
  }
  kill(-group, SIGKILL);
  _exit(0);
}

// Whether the mask of that name in /proc/PID/status ("SigCgt") has the signal.
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

absl::StatusOr<GroupReaper> GroupReaper::Start(pid_t group) {
  HVDLITE_ASSIGN_OR_RETURN(base::Pipe pipe, base::MakePipe());
  const pid_t process = fork();
  if (process < 0) {
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (process == 0) {
    pipe.writer = base::Descriptor();
    Reap(group, pipe.reader.get());
  }
  return GroupReaper(process, std::move(pipe.writer));
}

void GroupReaper::Release() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace hvdlite::launch
