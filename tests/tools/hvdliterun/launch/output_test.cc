// Child processes, their output, and what is told of their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/hvdliterun/launch/rank_reports.h"
#include "tools/hvdliterun/launch/run_job.h"
#include "tools/hvdliterun/rank/binding.h"
#include "tools/support/child_process.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Seen {
  ChildEnd end;
  std::string output;
  std::string errors;
};

Seen RunShell(const std::string& script,
              ChildOptions options = {
                  .command = {}, .environment = {}, .output = Stream::kPipe}) {
  Seen seen;
  options.command = {"sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin", "PROBE=here"};
  options.errors = Stream::kPipe;
  options.on_output = [&](absl::string_view text) {
    absl::StrAppend(&seen.output, text);
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
  const Seen seen = RunShell("echo $PROBE; echo there >&2; exit 5");
  EXPECT_EQ(seen.output, "here\n");
  EXPECT_EQ(seen.errors, "there\n");
  EXPECT_EQ(seen.end.exit_code, 5);
}

TEST(ChildTest, ASignalIs128AndItsNumber) {
  EXPECT_EQ(RunShell("kill -KILL $$").end.exit_code, 128 + SIGKILL);
}

TEST(ChildTest, MuchOutputArrivesWhole) {
  const Seen seen = RunShell(
      "i=0; while [ $i -lt 20000 ]; do echo $i; "
      "i=$((i+1)); done");
  EXPECT_EQ(std::count(seen.output.begin(), seen.output.end(), '\n'), 20000);
  EXPECT_THAT(seen.output, ::testing::EndsWith("\n19999\n"));
}

TEST(ChildTest, ATerminalPassesBytesAsTheyAre) {
  const Seen seen =
      RunShell("test -t 1 && printf 'a\\nb'",
               {.command = {}, .environment = {}, .output = Stream::kTerminal});
  EXPECT_EQ(seen.end.exit_code, 0);
  EXPECT_EQ(seen.output, "a\nb");
}

TEST(ChildTest, WhoHoldsTheStreamOpenDoesNotHoldUpTheEnd) {
  const Seen seen = RunShell("sleep infinity & echo $!");
  EXPECT_EQ(seen.end.exit_code, 0);
  kill(std::stoi(seen.output), SIGKILL);
}

TEST(ChildTest, ASignalToThisProcessReachesTheChild) {
  ChildOptions options = {.command = {},
                          .environment = {},
                          .own_group = true,
                          .output = Stream::kPipe};
  bool sent = false;
  Seen seen;
  options.command = {"sh", "-c",
                     "sleep infinity >/dev/null & "
                     "trap 'kill $!; echo got; exit 7' USR1; echo ready; wait"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.on_output = [&](absl::string_view text) {
    absl::StrAppend(&seen.output, text);
    if (!sent && seen.output == "ready\n") {
      sent = true;
      kill(getpid(), SIGUSR1);
    }
  };
  const auto end = RunChild(options);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_EQ(seen.output, "ready\ngot\n");
  EXPECT_EQ(end->ended_by_signal, 0) << "SIGUSR1 ends nothing";
}

TEST(ChildTest, ASignalThatIsIgnoredStaysIgnored) {
  const sighandler_t former = signal(SIGHUP, SIG_IGN);  // as nohup does
  ChildOptions options = {.command = {},
                          .environment = {},
                          .own_group = true,
                          .output = Stream::kPipe};
  options.command = {"sh", "-c",
                     "trap 'exit 7' USR1; echo ready; "
                     "while true; do sleep 0.01; done"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.on_output = [](absl::string_view) {
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR1);
  };
  const auto end = RunChild(options);
  signal(SIGHUP, former);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->ended_by_signal, 0);
  EXPECT_EQ(end->exit_code, 7);
}

TEST(ChildTest, WhatEndsTheChildEndsItsGroup) {
  ChildOptions options = {.command = {},
                          .environment = {},
                          .own_group = true,
                          .output = Stream::kPipe};
  int grandchild = 0;
  options.command = {"sh", "-c",
                     "(trap '' TERM; exec sleep infinity) >/dev/null & "
                     "echo $!; exec sleep infinity"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.on_output = [&](absl::string_view text) {
    grandchild = std::stoi(std::string(text));
    kill(getpid(), SIGTERM);
  };
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // its orphans are this process's to see
  const auto end = RunChild(options);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->ended_by_signal, SIGTERM);
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
  int status = 0;
  EXPECT_EQ(waitpid(grandchild, &status, 0), grandchild);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(ChildTest, WhatCannotBeStartedIsNamed) {
  const auto end =
      RunChild({.command = {"/no/such/program"}, .environment = {}});
  EXPECT_EQ(end.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("/no/such/program"));
}

TEST(ChildTest, AnErrorBeforeTheProgramStartsItNot) {
  const auto end =
      RunChild({.command = {"true"}, .environment = {}, .before_exec = [] {
                  return absl::InternalError("no binding");
                }});
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("no binding"));
}

TEST(CaptureTest, OutputAndErrorsAreTakenTogether) {
  const auto output = CaptureOutput({"sh", "-c", "echo a; echo b >&2; exit 3"});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->status, 3);
  EXPECT_THAT(output->text, HasSubstr("a\n"));
  EXPECT_THAT(output->text, HasSubstr("b\n"));
}

TEST(BindingTest, StatusTellsTheCpus) {
  EXPECT_THAT(*CpusOfStatus("Name:\tx\nCpus_allowed:\tb\n"
                            "Cpus_allowed_list:\t0-1,3\nMems_allowed:\t1\n"),
              ElementsAre(0, 1, 3));
  EXPECT_FALSE(CpusOfStatus("Name:\tx\n").ok());
}

TEST(TailTest, KeepsTheLastLinesAndWhatFollows) {
  OutputTail tail(2);
  EXPECT_THAT(tail.lines(), IsEmpty());
  tail.Take("a\nb\nc");
  EXPECT_THAT(tail.lines(), ElementsAre("b", "c"));
  tail.Take("c\nd\n");
  EXPECT_THAT(tail.lines(), ElementsAre("cc", "d"));
  tail.Take(std::string(100'000, 'x'));
  EXPECT_LT(tail.lines().back().size(), 10'000u);
}

RankFailure Failure(int rank, int code, bool told) {
  return {.rank = rank,
          .host = "n1",
          .exit_code = code,
          .was_told = told,
          .last_lines = {"one", "two\x1e\"\\"}};
}

TEST(ReportsTest, AreTakenOutOfTheStream) {
  std::string passed;
  RankReports reports(
      [&](absl::string_view text) { absl::StrAppend(&passed, text); });
  const std::string line = ReportLine(Failure(3, 5, false));
  // In pieces, and behind a line that has not ended.
  reports.Take("before");
  reports.Take(line.substr(0, 10));
  EXPECT_EQ(passed, "before");
  reports.Take(line.substr(10) + "after\n");
  EXPECT_EQ(passed, "beforeafter\n");
  ASSERT_THAT(reports.failures(), SizeIs(1));
  EXPECT_EQ(reports.failures()[0].rank, 3);
  EXPECT_EQ(reports.failures()[0].host, "n1");
  EXPECT_EQ(reports.failures()[0].exit_code, 5);
  EXPECT_THAT(reports.failures()[0].last_lines,
              ElementsAre("one", "two\x1e\"\\"));
}

TEST(ReportsTest, TheFirstThatFailedOnItsOwnCounts) {
  RankReports reports([](absl::string_view) {});
  EXPECT_EQ(reports.First(), std::nullopt);
  reports.Take(ReportLine(Failure(0, 143, true)));
  EXPECT_EQ(reports.First(), std::nullopt);
  reports.Take(ReportLine(Failure(2, 6, false)) +
               ReportLine(Failure(1, 5, false)));
  EXPECT_EQ(reports.First()->rank, 2);
}

TEST(ReportsTest, ARankWithoutAWordIsExplainedByAnotherThatFailed) {
  RankFailure silent = Failure(1, 2, false);
  silent.last_lines = {};
  RankReports reports([](absl::string_view) {});
  EXPECT_EQ(DescribeFailure(reports, ""), "");
  reports.Take(ReportLine(silent));
  EXPECT_EQ(
      DescribeFailure(reports, ""),
      "hvdliterun: rank 1 on n1 failed first, with exit code 2, without a "
      "word\n");
  reports.Take(ReportLine(Failure(2, 143, true)));  // it had to end
  RankFailure speaking = Failure(0, 139, false);
  speaking.last_lines = {"no such flag"};
  reports.Take(ReportLine(speaking));
  EXPECT_EQ(DescribeFailure(reports, "logs"),
            "hvdliterun: rank 1 on n1 failed first, with exit code 2, without "
            "a word; so did rank 0 on n1, by signal 11 (Segmentation fault), "
            "with the last lines:\n  | no such flag\n  all of them: "
            "logs/rank.0.log\n");
}

TEST(ReportsTest, WhatOnlyLooksLikeOneIsPassedOn) {
  std::string passed;
  RankReports reports(
      [&](absl::string_view text) { absl::StrAppend(&passed, text); });
  reports.Take("\x1ehvdliterun {\"rank\":1}\n\x1e other\n\x1ehvdl");
  reports.End();
  EXPECT_EQ(passed, "\x1ehvdliterun {\"rank\":1}\n\x1e other\n\x1ehvdl");
  EXPECT_THAT(reports.failures(), IsEmpty());
}

TEST(ReportsTest, FitIntoOneWriteWhateverTheOutput) {
  RankFailure failure = Failure(1, 1, false);
  failure.last_lines.assign(20, std::string(5000, '\xff'));
  failure.last_lines.push_back("the last");
  const std::string line = ReportLine(failure);
  EXPECT_LE(line.size(), 4000u);
  RankReports reports([](absl::string_view) {});
  reports.Take(line);
  ASSERT_THAT(reports.failures(), SizeIs(1));
  EXPECT_EQ(reports.failures()[0].last_lines.back(), "the last");
}

}  // namespace
}  // namespace hvdlite::launch
