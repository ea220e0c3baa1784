#include "support/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "tests/testing/fakes/sweep_directory.h"

namespace hvdlite::support {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct SeenChild {
  ChildEnd end;
  std::string output;
  std::string errors;
};

const ChildOptions kPiped = {
    .command = {}, .environment = {}, .output = Stream::kPipe};

// `on_output` receives all output so far.
SeenChild RunChildShell(
    const std::string& script, ChildOptions options = kPiped,
    const std::function<void(const std::string&)>& on_output = nullptr) {
  SeenChild seen;
  options.command = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin", "PROBE=here"};
  options.errors = Stream::kPipe;
  options.on_output = [&](absl::string_view text) {
    absl::StrAppend(&seen.output, text);
    if (on_output) on_output(seen.output);
  };
  options.on_errors = [&](absl::string_view text) {
    absl::StrAppend(&seen.errors, text);
  };
  const auto end = RunChild(options);
  EXPECT_TRUE(end.ok()) << end.status();
  seen.end = end.value_or(ChildEnd());
  return seen;
}

TEST(ChildTest, OutputEnvironmentAndExitCodeArrive) {
  const SeenChild seen = RunChildShell("echo $PROBE; echo there >&2; exit 5");
  EXPECT_EQ(seen.output, "here\n");
  EXPECT_EQ(seen.errors, "there\n");
  EXPECT_EQ(seen.end.exit_code, 5);
}

TEST(ChildTest, LargeOutputArrivesCompletely) {
  const SeenChild seen = RunChildShell(
      "i=0; while [ $i -lt 20000 ]; do echo $i; "
      "i=$((i+1)); done");
  EXPECT_EQ(std::count(seen.output.begin(), seen.output.end(), '\n'), 20000);
  EXPECT_THAT(seen.output, ::testing::EndsWith("\n19999\n"));
}

TEST(ChildTest, TerminalPassesBytesUnchanged) {
  const SeenChild seen = RunChildShell(
      "test -t 1 && printf 'a\\nb'",
      {.command = {}, .environment = {}, .output = Stream::kTerminal});
  EXPECT_EQ(seen.end.exit_code, 0);
  EXPECT_EQ(seen.output, "a\nb");
}

TEST(ChildTest, GrandchildWithOpenStreamDoesNotDelayTheEnd) {
  const SeenChild seen = RunChildShell("sleep infinity & echo $!");
  EXPECT_EQ(seen.end.exit_code, 0);
  kill(std::stoi(seen.output), SIGKILL);
}

// The child has its own process group.
SeenChild RunGroup(const std::string& script,
                   const std::function<void(const std::string&)>& on_output) {
  ChildOptions options = kPiped;
  options.own_group = true;
  return RunChildShell(script, options, on_output);
}

TEST(ChildTest, SignalToThisProcessReachesTheChild) {
  const SeenChild seen = RunGroup(
      "sleep infinity >/dev/null & "
      "trap 'kill $!; echo got; exit 7' USR1; echo ready; wait",
      [](const std::string& output) {
        if (output == "ready\n") kill(getpid(), SIGUSR1);
      });
  EXPECT_EQ(seen.end.exit_code, 7);
  EXPECT_EQ(seen.output, "ready\ngot\n");
  EXPECT_EQ(seen.end.ended_by_signal, 0) << "SIGUSR1 must not end the run";
}

TEST(ChildTest, IgnoredSignalStaysIgnored) {
  const sighandler_t former = signal(SIGHUP, SIG_IGN);  // as nohup does
  const SeenChild seen = RunGroup(
      "trap 'exit 7' USR1; echo ready; while true; do sleep 0.01; done",
      [](const std::string&) {
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGUSR1);
      });
  signal(SIGHUP, former);
  EXPECT_EQ(seen.end.ended_by_signal, 0);
  EXPECT_EQ(seen.end.exit_code, 7);
}

TEST(ChildTest, SignalThatEndsTheChildEndsItsGroup) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // adopts orphans of the child
  const SeenChild seen = RunGroup(
      "(trap '' TERM; exec sleep infinity) >/dev/null 2>&1 & "
      "echo $!; exec sleep infinity",
      [](const std::string&) { kill(getpid(), SIGTERM); });
  EXPECT_EQ(seen.end.ended_by_signal, SIGTERM);
  EXPECT_EQ(seen.end.exit_code, 128 + SIGTERM);
  const int grandchild = std::stoi(seen.output);
  int status = 0;
  EXPECT_EQ(waitpid(grandchild, &status, 0), grandchild);
  EXPECT_TRUE(WIFSIGNALED(status));
}

// Also without a SignalPipe.
TEST(ChildTest, ChildBeyondItsTimeLimitIsEnded) {
  ChildOptions options = kPiped;
  options.limit = absl::Milliseconds(50);
  const SeenChild seen = RunChildShell("exec sleep infinity", options);
  EXPECT_TRUE(seen.end.timed_out);
  EXPECT_EQ(seen.end.exit_code, 128 + SIGTERM);
}

TEST(ChildTest, ErrorInBeforeExecPreventsTheStart) {
  const auto end =
      RunChild({.command = {"true"}, .environment = {}, .before_exec = [] {
                  return absl::InternalError("no binding");
                }});
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("no binding"));
}

TEST(CaptureTest, EnvironmentIsInheritedWithChanges) {
  const auto output =
      CaptureOutput({"sh", "-c", "echo $A; test -n \"$PATH\""}, {{"A", "b"}});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->status, 0);
  EXPECT_EQ(output->text, "b\n");
}

TEST(CaptureTest, OutputAndErrorsAreCombined) {
  const auto output = CaptureOutput({"sh", "-c", "echo a; echo b >&2; exit 3"});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->status, 3);
  EXPECT_THAT(output->text, HasSubstr("a\n"));
  EXPECT_THAT(output->text, HasSubstr("b\n"));
}

class LoggedChildTest : public ::testing::Test {
 protected:
  absl::StatusOr<ChildEnd> RunChildShell(
      const std::string& script, absl::Duration limit = absl::Hours(1),
      absl::Duration grace = absl::Seconds(60)) {
    return RunChild({.command = {"sh", "-c", script},
                     .environment = {"PATH=/usr/bin:/bin", "A=b"},
                     .own_group = true,
                     .signal_on_death = SIGTERM,
                     .log_file = directory_ / "log",
                     .limit = limit,
                     .grace = grace,
                     .stop = &stop_});
  }
  // A named pipe. It reaches its end when no process has it open any more.
  std::string MakeFifo() {
    const std::string fifo = directory_ / "fifo";
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    return fifo;
  }
  // Exit code of a process that runs a child, gets SIGINT, and stops until the
  // child has ended with `code`: 0 if it `is_right`.
  int StatusOfInterrupted(
      int code, const std::function<bool(const ChildEnd&)>& is_right) {
    const pid_t runner = fork();
    if (runner == 0) {
      const auto end = RunChildShell(
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
    text << std::ifstream(directory_ / "log").rdbuf();
    return text.str();
  }

  const scaling_sweep::SweepDirectory directory_;
  SignalPipe stop_;
};

TEST_F(LoggedChildTest, ExitCodeIsReturnedAndOutputIsInTheLog) {
  const auto end = RunChildShell("echo out; echo $A >&2; cat; exit 3");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 3);
  EXPECT_FALSE(end->timed_out);
  EXPECT_EQ(Log(), "out\nb\n");
}

TEST_F(LoggedChildTest, TimeLimitEndsTheWholeGroup) {
  const std::string fifo = MakeFifo();
  // Both processes hold the pipe's writing end, so the reader sees its end only
  // after both have ended. The background process ignores SIGTERM.
  const base::Descriptor reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  const auto end = RunChildShell(
      "exec 3>'" + fifo +
          "'; (trap '' TERM; exec tail -f /dev/null) & exec tail -f /dev/null",
      /*limit=*/absl::Milliseconds(300));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->timed_out);
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
  ASSERT_EQ(fcntl(reader.get(), F_SETFL, 0), 0);  // until both have ended
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
}

TEST_F(LoggedChildTest, ChildThatIgnoresSigtermIsKilledAfterTheGrace) {
  // Children inherit ignored signals from this process.
  signal(SIGTERM, SIG_IGN);
  const auto end = RunChildShell("exec tail -f /dev/null",
                                 /*limit=*/absl::Milliseconds(20),
                                 /*grace=*/absl::Milliseconds(20));
  signal(SIGTERM, SIG_DFL);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 128 + SIGKILL);
}

TEST_F(LoggedChildTest, StopSignalEndsTheRunAndIsReported) {
  raise(SIGINT);  // stays in the pipe
  const auto end = RunChildShell("exec tail -f /dev/null");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->ended_by_signal, SIGINT);
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
}

TEST_F(LoggedChildTest, StopSignalIsReportedEvenIfTheChildEndedFirst) {
  EXPECT_EQ(StatusOfInterrupted(/*code=*/3,
                                [](const ChildEnd& end) {
                                  return end.ended_by_signal == SIGINT &&
                                         end.exit_code == 3;
                                }),
            0);
}

TEST_F(LoggedChildTest, StopSignalDuringASuccessInterruptsTheNextRun) {
  EXPECT_EQ(StatusOfInterrupted(/*code=*/0,
                                [this](const ChildEnd& end) {
                                  return end.ended_by_signal == 0 &&
                                         stop_.Next() == SIGINT;
                                }),
            0);
}

TEST_F(LoggedChildTest, ChildDoesNotOutliveThisProcess) {
  const std::string fifo = MakeFifo();
  const pid_t runner = fork();
  if (runner == 0) {
    (void)RunChildShell("exec 3>'" + fifo +
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

TEST_F(LoggedChildTest, UnwritableLogIsNamed) {
  const auto end = RunChild({.command = {"true"},
                             .environment = {},
                             .log_file = directory_ / "none/log",
                             .stop = &stop_});
  EXPECT_EQ(end.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("none/log"));
}

TEST(ChildProcessTest, OutputAndExitCodeAreReturned) {
  ChildProcess child("/bin/sh", {"sh", "-c", "echo $NAME; exit 3"},
                     {"NAME=value"});
  std::array<char, 16> buffer;
  EXPECT_EQ(read(child.output(), buffer.data(), buffer.size()), 6);
  EXPECT_EQ(std::string(buffer.data(), 6), "value\n");
  EXPECT_EQ(read(child.error(), buffer.data(), buffer.size()), 0);
  EXPECT_EQ(child.Wait(), 3);
}

TEST(ChildProcessTest, SignalsCaughtByTheParentEndTheChild) {
  const SignalPipe signals;
  ChildProcess child("/bin/sh", {"sh", "-c", "echo; while :; do :; done"}, {});
  char newline = 0;
  EXPECT_EQ(read(child.output(), &newline, 1), 1);  // it runs
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 128 + SIGTERM);
}

TEST(ChildProcessTest, ProgramThatCannotBeStartedIsNamed) {
  EXPECT_THAT([] { ChildProcess("/nonexistent/program", {"program"}, {}); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("cannot start /nonexistent/program")));
}

}  // namespace
}  // namespace hvdlite::support
