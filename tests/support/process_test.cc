#include "support/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "base/descriptor.h"

namespace hvdlite::support {
namespace {

using ::testing::HasSubstr;

std::string ReadAll(int descriptor) {
  std::string text;
  char buffer[256];
  while (true) {
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

struct Seen {
  std::string output;
  int exit_code = 0;
};

Seen RunShell(const std::string& script,
              ProcessOptions options = {.command = {},
                                        .environment = {"A=value"}}) {
  base::Pipe output = base::MakePipe().value();
  if (options.command.empty()) options.command = {"sh"};
  options.command.insert(options.command.end(), {"-c", script});
  options.output = output.writer.get();
  const absl::StatusOr<pid_t> child = StartProcess(options);
  EXPECT_TRUE(child.ok()) << child.status();
  if (!child.ok()) return {};
  output.writer = base::Descriptor();
  Seen seen;
  seen.output = ReadAll(output.reader.get());
  seen.exit_code = WaitForExit(*child);
  return seen;
}

TEST(ProcessTest, EnvironmentStreamsAndExitCodeArePassed) {
  const Seen seen = RunShell("echo $A; exit 3");
  EXPECT_EQ(seen.output, "value\n");
  EXPECT_EQ(seen.exit_code, 3);
}

TEST(ProcessTest, DeathBySignalIs128PlusItsNumber) {
  EXPECT_EQ(RunShell("kill -KILL $$").exit_code, 128 + SIGKILL);
}

TEST(ProcessTest, FileMayDifferFromTheProgramsName) {
  EXPECT_EQ(RunShell("echo $0", {.command = {"another name"},
                                 .environment = {},
                                 .program = "/bin/sh"})
                .output,
            "another name\n");
}

TEST(ProcessTest, OwnGroupHasTheIdOfTheProcess) {
  EXPECT_EQ(RunShell("read id name state parent group rest < /proc/$$/stat; "
                     "test $group = $$",
                     {.command = {}, .environment = {}, .own_group = true})
                .exit_code,
            0);
}

TEST(ProcessTest, ExitCodeIsKnownEvenIfSigchldWasIgnored) {
  signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(RunShell("exit 3").exit_code, 3);
}

TEST(ProcessTest, ReapedProcessHasANonzeroExitCode) {
  const absl::StatusOr<pid_t> child =
      StartProcess({.command = {"true"}, .environment = {}});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(WaitForExit(*child), 0);
  EXPECT_NE(WaitForExit(*child), 0);
}

TEST(ProcessTest, CaughtSignalsHaveDefaultActionsInTheChild) {
  signal(SIGTERM, SIG_DFL);
  const SignalPipe signals;
  EXPECT_EQ(RunShell("kill -TERM $$; exit 5").exit_code, 128 + SIGTERM);
}

TEST(ProcessTest, ChildCatchesNoSignalsBeforeExec) {
  signal(SIGTERM, SIG_DFL);
  const SignalPipe signals;
  ProcessOptions options = {.command = {"true"}, .environment = {}};
  options.before_exec = [] {
    raise(SIGTERM);
    return absl::OkStatus();
  };
  const absl::StatusOr<pid_t> child = StartProcess(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(WaitForExit(*child), 128 + SIGTERM);
  EXPECT_EQ(signals.Next(), std::nullopt);
}

TEST(ProcessTest, BlockedSignalsAreRestored) {
  sigset_t former;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &former);
  RunShell("true");
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < 32; ++number) {
    EXPECT_EQ(sigismember(&former, number), sigismember(&after, number));
  }
  signal(SIGINT, SIG_DFL);  // ignored in a shell's background job
  EXPECT_EQ(RunShell("kill -INT $$; exit 5").exit_code, 128 + SIGINT);
}

TEST(ProcessTest, MissingProgramIsNotFound) {
  const auto child =
      StartProcess({.command = {"/no/such/program"}, .environment = {}});
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(child.status().message()),
      HasSubstr("cannot start /no/such/program: No such file or directory"));
}

TEST(ProcessTest, NonExecutableFileIsPermissionDenied) {
  EXPECT_EQ(StartProcess({.command = {"/dev/null"}, .environment = {}})
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(ProcessTest, ErrorOfBeforeExecIsReturned) {
  const std::string reason(2000, 'x');
  ProcessOptions options = {.command = {"true"}, .environment = {}};
  options.before_exec = [&] { return absl::InternalError(reason); };
  const auto child = StartProcess(options);
  EXPECT_EQ(child.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(child.status().message(), reason.substr(0, 1000));
}

TEST(ProcessTest, ProgramWaitsForBeforeProgram) {
  // "(name) S": the child waits asleep; `true` would have ended.
  const auto name_and_state_of = [](const std::string& process) {
    std::string stat;
    std::getline(std::ifstream("/proc/" + process + "/stat"), stat);
    const size_t begin = stat.find('(');
    return stat.substr(begin, stat.rfind(')') + 3 - begin);
  };
  std::string name;
  ProcessOptions options = {.command = {"true"}, .environment = {}};
  options.before_program = [&](pid_t child) {
    do {
      sched_yield();
      name = name_and_state_of(std::to_string(child));
    } while (name.back() != 'S' && name.back() != 'Z');
  };
  const auto child = StartProcess(options);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(WaitForExit(*child), 0);
  std::string waiting = name_and_state_of("self");
  waiting.back() = 'S';
  EXPECT_EQ(name, waiting);
  options.command = {"/no/such/program"};
  EXPECT_TRUE(absl::IsNotFound(StartProcess(options).status()));
  // before_program is not called for a program that cannot start.
  name.clear();
  options.before_exec = [] { return absl::InternalError("no"); };
  EXPECT_FALSE(StartProcess(options).ok());
  EXPECT_EQ(name, "");
}

// Some signals are ignored under nohup or in a shell's background job.
class SignalPipeTest : public ::testing::Test {
 protected:
  SignalPipeTest() {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
      signal(number, SIG_DFL);
    }
  }
};

TEST_F(SignalPipeTest, CatchesSignalsWhileItExists) {
  SignalPipe signals;
  EXPECT_EQ(signals.Next(), std::nullopt);
  for (const int number : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) {
    raise(number);
    EXPECT_EQ(signals.Next(), number);
  }
  EXPECT_EQ(signals.Next(), std::nullopt);
}

TEST_F(SignalPipeTest, RestoresTheFormerActions) {
  { const SignalPipe signals; }
  EXPECT_EXIT(raise(SIGHUP), ::testing::KilledBySignal(SIGHUP), "");
}

TEST_F(SignalPipeTest, IgnoredSignalsStayIgnored) {
  signal(SIGHUP, SIG_IGN);
  {
    const SignalPipe signals;
    raise(SIGHUP);
    EXPECT_EQ(signals.Next(), std::nullopt);
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

bool IsOfB(const std::string& path) {
  return path == "/b/train" || path == "./train";
}

TEST(PathOfProgramTest, FirstInPathIsFound) {
  EXPECT_EQ(
      PathOfProgram("train", base::FakeEnvironment({{"PATH", "/a:/b:"}}), IsOfB)
          .value(),
      "/b/train");
  EXPECT_EQ(
      PathOfProgram("train", base::FakeEnvironment({{"PATH", "/a::/b"}}), IsOfB)
          .value(),
      "./train");
  EXPECT_EQ(PathOfProgram("./train", base::FakeEnvironment({}), IsOfB).value(),
            "./train");
}

TEST(PathOfProgramTest, MissingProgramIsAnError) {
  EXPECT_THAT(
      std::string(
          PathOfProgram("train", base::FakeEnvironment({{"PATH", "/a"}}), IsOfB)
              .status()
              .message()),
      HasSubstr("there is no train in PATH: give its path (./train)"));
  const auto message_of = [](const std::string& program) {
    return std::string(PathOfProgram(program, base::FakeEnvironment({}), IsOfB)
                           .status()
                           .message());
  };
  EXPECT_EQ(message_of("./x"),
            "there is no ./x: correct the path, or build it");
  EXPECT_EQ(message_of("/etc"), "/etc is a directory, not a program");
  EXPECT_THAT(message_of("/etc/passwd"),
              HasSubstr("/etc/passwd cannot be executed: chmod +x it"));
}

TEST(IsExecutableTest, DirectoriesAndDataAreNotExecutable) {
  EXPECT_TRUE(IsExecutable("/bin/sh"));
  EXPECT_FALSE(IsExecutable("/bin"));
  EXPECT_FALSE(IsExecutable("/etc/passwd"));
}

}  // namespace
}  // namespace hvdlite::support
