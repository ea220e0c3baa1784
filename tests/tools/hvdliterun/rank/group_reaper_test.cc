#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tools/hvdliterun/rank/rank_guard.h"

namespace hvdlite::launch {
namespace {

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    reader = base::Descriptor(ends[0]);
    writer = base::Descriptor(ends[1]);
  }
  base::Descriptor reader;
  base::Descriptor writer;
};

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

// Ends once nobody holds the pipe any more.
void ReadToEnd(Pipe& pipe) {
  pipe.writer = base::Descriptor();
  char byte = 0;
  while (read(pipe.reader.get(), &byte, 1) > 0) {
  }
}

// A wrapper script in a group of its own, with a child in the background that
// holds the pipe open.
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

// A process that starts a wrapper and its reaper, tells so, and waits.
pid_t StartNodesPart(const Pipe& pipe, GroupReaper::Options options) {
  return Fork([&] {
    options.group = StartWrapper(pipe);
    const auto reaper = GroupReaper::Start(options);
    if (!reaper.ok() || write(pipe.writer.get(), "reaper\n", 7) != 7) return;
    PauseForEver();
  });
}

TEST(GroupReaperTest, TheGroupEndsWithTheProcessThatIsKilled) {
  Pipe pipe;
  const pid_t part = StartNodesPart(pipe, {});
  ReadLines(pipe, 2);
  kill(part, SIGKILL);
  ReadToEnd(pipe);
  EXPECT_EQ(WTERMSIG(StatusOf(part)), SIGKILL);
}

TEST(GroupReaperTest, AReleasedGroupIsLeftAlone) {
  Pipe pipe;
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

TEST(GroupReaperTest, ALauncherThatEndsTakesEverythingWithIt) {
  Pipe pipe;
  const pid_t launcher = Fork(PauseForEver);
  const pid_t part = StartNodesPart(pipe, {.launcher = launcher});
  ReadLines(pipe, 2);
  kill(launcher, SIGKILL);
  ReadToEnd(pipe);
  EXPECT_EQ(WTERMSIG(StatusOf(part)), SIGTERM) << "it may end in order";
  StatusOf(launcher);
}

TEST(GroupReaperTest, WhoDoesNotEndInOrderIsKilled) {
  Pipe pipe;
  const pid_t launcher = Fork(PauseForEver);
  const sighandler_t former = signal(SIGTERM, SIG_IGN);
  const pid_t part = StartNodesPart(
      pipe, {.launcher = launcher, .grace = absl::ZeroDuration()});
  signal(SIGTERM, former);
  ReadLines(pipe, 2);
  kill(launcher, SIGKILL);
  ReadToEnd(pipe);
  EXPECT_EQ(WTERMSIG(StatusOf(part)), SIGKILL);
  StatusOf(launcher);
}

}  // namespace
}  // namespace hvdlite::launch
