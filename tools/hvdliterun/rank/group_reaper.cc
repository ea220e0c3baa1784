#include "tools/hvdliterun/rank/group_reaper.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hvdlite::launch {
namespace {

using base::Descriptor;

// Linux 5.3 and later; else invalid, and the process's end is not noticed.
Descriptor OpenProcess(pid_t process) {
#ifdef SYS_pidfd_open
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
#else
  return Descriptor();
#endif
}

// A pipe that stays open here would hold up whoever reads its other end.
void CloseAllBut(int one, int other) {
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
    if (descriptor > STDERR_FILENO && descriptor != one &&
        descriptor != other) {
      close(descriptor);
    }
  }
}

int Poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  int ready = -1;
  do {
    ready = poll(descriptors, count, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready;
}

[[noreturn]] void Reap(const GroupReaper::Options& options, pid_t parent,
                       int alive, int launcher) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();  // launchers signal the process groups that they started
  alive = fcntl(alive, F_DUPFD, STDERR_FILENO + 1);
  launcher = fcntl(launcher, F_DUPFD, STDERR_FILENO + 1);
  CloseAllBut(alive, launcher);
  std::array<pollfd, 2> watched = {
      {{.fd = alive, .events = POLLIN, .revents = 0},
       {.fd = launcher, .events = POLLIN, .revents = 0}}};
  Poll(watched.data(), watched.size(), -1);
  if (watched[0].revents == 0) {  // the launcher has ended
    kill(parent, SIGTERM);
    const auto grace_ms =
        static_cast<int>(absl::ToInt64Milliseconds(options.grace));
    if (Poll(watched.data(), 1, grace_ms) == 0) kill(parent, SIGKILL);
  }
  char released = 0;
  if (read(alive, &released, 1) != 1) kill(-options.group, SIGKILL);
  _exit(0);
}

}  // namespace

absl::StatusOr<GroupReaper> GroupReaper::Start(const Options& options) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::InternalError(
        absl::StrCat("socketpair: ", std::strerror(errno)));
  }
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const Descriptor launcher = options.launcher.has_value()
                                  ? OpenProcess(*options.launcher)
                                  : Descriptor();
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  if (process == 0) {
    writer = Descriptor();
    Reap(options, parent, reader.get(), launcher.get());
  }
  return GroupReaper(process, std::move(writer));
}

void GroupReaper::Release() {
  const char released = 1;
  // If it has ended already, there is nothing to tell.
  (void)send(alive_.get(), &released, 1, MSG_NOSIGNAL);
  alive_ = Descriptor();
  waitpid(process_, nullptr, 0);
}

}  // namespace hvdlite::launch
