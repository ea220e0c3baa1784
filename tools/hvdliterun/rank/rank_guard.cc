#include "tools/hvdliterun/rank/rank_guard.h"

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
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/contain_exceptions.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/rank/binding.h"

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

// False if the end comes first.
bool Pause(absl::Duration duration, const std::stop_token& end) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  return !std::condition_variable_any().wait_for(
      lock, end, absl::ToChronoMilliseconds(duration),
      [&] { return end.stop_requested(); });
}

// Whether the mask of that name in /proc/PID/status ("SigCgt") has the signal.
bool HasSignal(const std::string& status, absl::string_view mask, int number) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, mask) || !absl::ConsumePrefix(&line, ":")) {
      continue;
    }
    const std::string digits(absl::StripAsciiWhitespace(line));
    const uint64_t bits = std::strtoull(digits.c_str(), nullptr, 16);
    return ((bits >> (number - 1)) & 1) != 0;
  }
  return false;
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

RankGuard::RankGuard(const RankPlan& plan, const Variables& variables,
                     std::string own_arrangement,
                     std::function<void(absl::string_view)> complain)
    : plan_(plan),
      variables_(variables),
      own_arrangement_(std::move(own_arrangement)),
      complain_(std::move(complain)) {}

absl::Status RankGuard::Begin(pid_t program, std::optional<pid_t> launcher) {
  absl::StatusOr<GroupReaper> reaper =
      GroupReaper::Start({.group = program, .launcher = launcher});
  HVDLITE_RETURN_IF_ERROR(reaper.status());
  reaper_ = *std::move(reaper);
  try {
    watch_ = std::jthread(
        [this, program](const std::stop_token& end) {
          base::ContainExceptions([&] { Watch(program, end); });
        });
  } catch (const std::system_error& error) {  // no thread to be had
    complain_(
        absl::StrCat("nobody looks at its CPUs while it runs: ", error.what()));
  }
  return absl::OkStatus();
}

void RankGuard::End() {
  watch_ = std::jthread();  // stops and joins it
  if (reaper_.has_value()) reaper_->Release();
}

void RankGuard::Watch(pid_t program, const std::stop_token& end) const {
  const bool threads_are_free = ThreadsAreFree(variables_);
  WatchBinding(
      {.pause = [&](absl::Duration duration) { return Pause(duration, end); },
       .look =
           [&] {
             return DifferenceFromPlan(ThreadsOfGroup(program), plan_, program,
                                       threads_are_free);
           },
       .report =
           [&](absl::Duration since_start, const std::string& difference) {
             complain_(absl::StrCat(
                 since_start == absl::ZeroDuration()
                     ? "at"
                     : absl::StrCat(absl::FormatDuration(since_start),
                                    " after"),
                 " its start, ", difference, "; ",
                 HowToStopBinding(variables_, plan_, own_arrangement_)));
           }});
}

}  // namespace hvdlite::launch
