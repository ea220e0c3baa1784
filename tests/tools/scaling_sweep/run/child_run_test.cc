#include "tools/scaling_sweep/run/child_run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/descriptor.h"
#include "tests/testing/fakes/sweep_folder.h"

namespace hvdlite::scaling_sweep {
namespace {

using testing::HasSubstr;

class ChildRunTest : public testing::Test {
 protected:
  absl::StatusOr<ChildEnd> RunShell(
      const std::string& script, Variables environment = {},
      absl::Duration limit = absl::InfiniteDuration(),
      absl::Duration grace = absl::Seconds(60)) {
    return RunChild(
        {.words = {"sh", "-c", script}, .environment = std::move(environment)},
        folder_ / "log", std::min(limit, absl::Hours(1)), grace, stop_);
  }
  // Of a process that runs a child, gets SIGINT, and stands still until the
  // child has ended with `code`: 0 if it `is_right`.
  template <typename IsRight>
  int StatusOfInterrupted(int code, const IsRight& is_right) {
    const pid_t runner = fork();
    if (runner == 0) {
      const auto end = RunShell(
          "kill -STOP $PPID; kill -INT $PPID; (until grep -q '^State:.*Z' "
          "/proc/$$/status; do :; done; kill -CONT $PPID) & exit " +
          std::to_string(code));
      _exit(end.ok() && is_right(*end) ? 0 : 1);
    }
    int status = -1;
    if (runner > 0) waitpid(runner, &status, 0);
    return status;
  }
  std::string Log() {
    std::stringstream text;
    text << std::ifstream(folder_ / "log").rdbuf();
    return text.str();
  }

  SweepFolder folder_;
  base::SignalPipe stop_;
};

TEST_F(ChildRunTest, TellsExitCodeAndKeepsWhatWasWritten) {
  const auto end = RunShell("echo out; echo $A >&2; exit 3", {{"A", "b"}});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_FALSE(end->timed_out);
  EXPECT_EQ(Log(), "out\nb\n");
}

TEST_F(ChildRunTest, ASignalsEndIsSeenAsShellsDo) {
  EXPECT_EQ(RunShell("kill -9 $$")->exit_code, 137);
}

TEST_F(ChildRunTest, WhatTakesTooLongEndsWithItsWholeGroup) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  // Both hold the pipe's writing end: there is an end of the file for us only
  // when both are gone. The one in the background does not heed SIGTERM.
  const base::Descriptor reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  const auto end = RunShell(
      "exec 3>'" + fifo +
          "'; (trap '' TERM; exec tail -f /dev/null) & exec tail -f /dev/null",
      {}, /*limit=*/absl::Milliseconds(300));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->timed_out);
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
  ASSERT_EQ(fcntl(reader.get(), F_SETFL, 0), 0);  // blocks until all are gone
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
}

TEST_F(ChildRunTest, WhoDoesNotHeedSigtermIsKilledAfterTheGrace) {
  // What is ignored here is ignored by children from their beginning.
  signal(SIGTERM, SIG_IGN);
  const auto end = RunShell("exec tail -f /dev/null", {},
                            /*limit=*/absl::Milliseconds(20),
                            /*grace=*/absl::Milliseconds(20));
  signal(SIGTERM, SIG_DFL);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 128 + SIGKILL);
}

TEST_F(ChildRunTest, AStopSignalEndsTheRunAndIsTold) {
  raise(SIGINT);  // is kept until somebody looks
  const auto end = RunShell("exec tail -f /dev/null");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->stopped_by, SIGINT);
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
}

TEST_F(ChildRunTest, AStopSignalIsToldThoughTheChildEndedFirst) {
  EXPECT_EQ(StatusOfInterrupted(/*code=*/3,
                                [](const ChildEnd& end) {
                                  return end.stopped_by == SIGINT &&
                                         end.exit_code == 3;
                                }),
            0);
}

TEST_F(ChildRunTest, AfterASuccessTheNextRunIsInterrupted) {
  EXPECT_EQ(StatusOfInterrupted(/*code=*/0,
                                [this](const ChildEnd& end) {
                                  return !end.stopped_by &&
                                         stop_.Next() == SIGINT;
                                }),
            0);
}

TEST_F(ChildRunTest, QuitIsAStopSignal) {
  raise(SIGQUIT);
  const auto end = RunShell("exec tail -f /dev/null");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->stopped_by, SIGQUIT);
}

TEST_F(ChildRunTest, TheChildDoesNotOutliveThisProcess) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const pid_t runner = fork();
  if (runner == 0) {
    (void)RunShell("exec 3>'" + fifo +
                   "'; echo $$ >&3; exec tail -f /dev/null");
    _exit(0);
  }
  ASSERT_GT(runner, 0);
  const base::Descriptor reader(open(fifo.c_str(), O_RDONLY));
  char text[32] = {};
  ASSERT_GT(read(reader.get(), text, sizeof text - 1), 0);
  kill(runner, SIGKILL);
  ASSERT_EQ(waitpid(runner, nullptr, 0), runner);
  pollfd writer = {reader.get(), POLLIN, 0};  // its end hangs up
  EXPECT_EQ(poll(&writer, 1, /*timeout=*/10000), 1);
  if (writer.revents == 0) kill(static_cast<pid_t>(std::stol(text)), SIGKILL);
}

TEST_F(ChildRunTest, ChildrenCanBeStoppedByTheSignalsThatAreKeptHere) {
  // The mask of this thread is not theirs.
  EXPECT_EQ(RunShell("kill -INT $$; exit 5")->exit_code, 128 + SIGINT);
}

TEST_F(ChildRunTest, AProgramThatIsNotThereIsAnError) {
  const auto end =
      RunChild({.words = {"/no/such/program"}, .environment = {}},
               folder_ / "log", absl::Hours(1), absl::Seconds(1), stop_);
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("cannot start /no/such/program"));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
