#include "tools/hvdliterun/rank/rank_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/process.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::launch {
namespace {

using base::Pipe;

pid_t Fork(const std::function<void()>& body) {
  const pid_t process = fork();
  EXPECT_GE(process, 0);
  if (process == 0) {
    body();
    _exit(0);
  }
  return process;
}

void PauseForEver() {
  while (true) pause();
}

int StatusOf(pid_t process) {
  int status = 0;
  EXPECT_EQ(waitpid(process, &status, 0), process);
  return status;
}

void ReadLines(const Pipe& pipe, int lines) {
  char byte = 0;
  while (lines > 0 && read(pipe.reader.get(), &byte, 1) == 1) {
    if (byte == '\n') --lines;
  }
  EXPECT_EQ(lines, 0);
}

// Returns when no process holds the pipe any more.
void ReadToEnd(Pipe& pipe) {
  pipe.writer = base::Descriptor();
  char byte = 0;
  while (read(pipe.reader.get(), &byte, 1) > 0) {
  }
}

// Starts a wrapper script in its own process group, with a background child
// that holds the pipe open.
pid_t StartWrapper(const Pipe& pipe) {
  const pid_t wrapper = Fork([&] {
    setpgid(0, 0);
    dup2(pipe.writer.get(), STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", "sleep infinity & echo started; wait",
          nullptr);
  });
  setpgid(wrapper, wrapper);
  return wrapper;
}

// Starts a process that starts a wrapper and its reaper, reports this, and
// waits.
pid_t StartNodesPart(const Pipe& pipe, std::optional<pid_t> launcher = {}) {
  return Fork([&] {
    const auto reaper = GroupReaper::Start({.group = StartWrapper(pipe),
                                            .launcher = launcher,
                                            .grace = absl::ZeroDuration()});
    if (!reaper.ok() || write(pipe.writer.get(), "reaper\n", 7) != 7) return;
    if (launcher.has_value()) raise(SIGSTOP);
    PauseForEver();
  });
}

TEST(GroupReaperTest, GroupEndsWithItsKilledStarter) {
  Pipe pipe = base::MakePipe().value();
  const pid_t part = StartNodesPart(pipe);
  ReadLines(pipe, 2);
  kill(part, SIGKILL);
  ReadToEnd(pipe);
  EXPECT_EQ(WTERMSIG(StatusOf(part)), SIGKILL);
}

TEST(GroupReaperTest, StoppedStarterEndsWithItsKilledLauncher) {
  Pipe pipe = base::MakePipe().value();
  const pid_t launcher = Fork([&] {
    StartNodesPart(pipe, getpid());
    PauseForEver();
  });
  ReadLines(pipe, 2);
  kill(launcher, SIGKILL);
  ReadToEnd(pipe);  // the process held it, too
  EXPECT_EQ(WTERMSIG(StatusOf(launcher)), SIGKILL);
}

TEST(GroupReaperTest, ReleasedGroupKeepsRunning) {
  Pipe pipe = base::MakePipe().value();
  const pid_t wrapper = StartWrapper(pipe);
  auto reaper = GroupReaper::Start({.group = wrapper});
  ASSERT_TRUE(reaper.ok()) << reaper.status();
  reaper->Release();
  ReadLines(pipe, 1);
  int status = 0;
  EXPECT_EQ(waitpid(wrapper, &status, WNOHANG), 0);
  kill(-wrapper, SIGKILL);
  StatusOf(wrapper);
  ReadToEnd(pipe);
}

TEST(PassSignalTest, ProcessWithEmptyStatusHasNoHandler) {
  const pid_t leader = support::StartProcess({.command = {"sleep", "infinity"},
                                              .environment = {},
                                              .own_group = true,
                                              .signal_on_death = SIGKILL})
                           .value();
  testing::MachineFiles tree;
  tree.AddProcess(leader, "sleep", leader);
  // The file can be opened, but there is nothing to read.
  tree.Write(absl::StrCat("/proc/", leader, "/status/is a directory"), "");
  PassSignal(SIGUSR1, leader, tree.files());
  EXPECT_EQ(support::WaitForExit(leader), 128 + SIGTERM);
}

}  // namespace
}  // namespace hvdlite::launch
