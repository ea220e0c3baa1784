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
#include "base/environment.h"
#include "support/child_process.h"
#include "tools/hvdliterun/launch/run_job.h"
#include "tools/hvdliterun/rank/binding.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

TEST(TailTest, ASignalHandlersStackDoesNotPushOutWhatWasWrong) {
  OutputTail tail(2);
  tail.Take("terminate called\n  what():  disk full\n");
  tail.Take("[n01:00018] *** Process received signal ***\n");
  for (int frame = 0; frame < 20; ++frame) {
    tail.Take(absl::StrCat("[n01:00018] [ ", frame,
                           "] /lib/libc.so.6(+0x3c050)[0x7f935bc5a050]\n"));
  }
  EXPECT_THAT(tail.lines(),
              ElementsAre("terminate called", "  what():  disk full"));
}

RankFailure Failure(int rank, int code, bool told) {
  return {.rank = rank,
          .host = "n1",
          .exit_code = code,
          .was_told = told,
          .reason = "",
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

TEST(ReportsTest, SuccessIsNoFailure) {
  RankReports reports([](absl::string_view) {});
  reports.Take(ReportLine({.rank = 0, .host = "a", .last_lines = {}}));
  reports.Take(
      ReportLine({.rank = 1, .host = "a", .exit_code = 137, .last_lines = {}}));
  EXPECT_EQ(reports.successes(), 1);
  EXPECT_EQ(reports.failures().size(), 1U);
}

TEST(ReportsTest, ARankWhoseWorldHadEndedIsNotTheCauseIfAnotherMayBe) {
  RankFailure follower = Failure(0, 134, false);
  follower.reason = "rank 1 (n2) died.";
  RankReports reports([](absl::string_view) {});
  reports.Take(ReportLine(follower));
  EXPECT_THAT(DescribeFailure(reports, ""),
              HasSubstr("hvdliterun: rank 1 (n2) died; then rank 0 on n1 "
                        "failed, by signal 6 (Aborted); its last lines:"));
  reports.Take(ReportLine(Failure(2, 143, true)) +
               ReportLine(Failure(1, 3, false)));
  EXPECT_EQ(reports.First()->rank, 1);
  EXPECT_EQ(reports.First()->exit_code, 3);
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

TEST(RunJobTest, ALauncherThatDoesNotEndAfterAFailureIsEnded) {
  const base::Environment& environment = base::ProcessEnvironment();
  const Job job = {
      .ranks = 1,
      .allocation = "",
      .hosts = {},
      .machine_from = "",
      .machine = {},
      .variables = Variables(environment),
      .exec = {},
      .command = {"sh", "-c", "printf %s \"$1\" >&2; exec sleep infinity",
                  "sh", ReportLine(Failure(0, 4, false))},
      .launcher_environment = {},
      .output_dir = "",
      .openblas_core_here = "",
      .notes = {}};
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<JobEnd> end =
      RunJob(job, environment, {.after_failure = absl::Milliseconds(1)});
  const std::string told = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code, 4);
  EXPECT_FALSE(end->told_to_stop);
  EXPECT_EQ(end->summary, "rank 0 on n1 failed first, with exit code 4");
  EXPECT_EQ(JobOptions{}.after_failure, absl::Seconds(15));
  EXPECT_THAT(told, HasSubstr("a rank has failed, and the launcher is still "
                              "there after 1ms: ending the launcher\n"));
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
