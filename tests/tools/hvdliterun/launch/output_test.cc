// The output of ranks, and the reports about their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "tools/hvdliterun/launch/run_job.h"
#include "tools/hvdliterun/rank/rank_reports.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TailTest, KeepsTheLastLinesAndAnIncompleteOne) {
  OutputTail tail(2);
  EXPECT_THAT(tail.lines(), IsEmpty());
  tail.Take("a\nb\nc");
  EXPECT_THAT(tail.lines(), ElementsAre("b", "c"));
  tail.Take("c\nd\n");
  EXPECT_THAT(tail.lines(), ElementsAre("cc", "d"));
  tail.Take(std::string(100'000, 'x'));
  EXPECT_LT(tail.lines().back().size(), 10'000u);
}

TEST(TailTest, StackTraceDoesNotReplaceTheErrorMessage) {
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

RankFailure Failure(int rank, int code, bool told = false) {
  return {.rank = rank,
          .host = "n1",
          .exit_code = code,
          .was_told = told,
          .reason = "",
          .last_lines = {"one", "two\x1e\"\\"}};
}

class ReportsTest : public ::testing::Test {
 protected:
  std::string passed_;
  RankReports reports_{
      [this](absl::string_view text) { absl::StrAppend(&passed_, text); }};
};

TEST_F(ReportsTest, ReportsAreRemovedFromTheStream) {
  const std::string line = ReportLine(Failure(3, 5));
  // The report arrives in pieces and after a line that has not ended.
  reports_.Take("before");
  reports_.Take(line.substr(0, 10));
  EXPECT_EQ(passed_, "before");
  reports_.Take(line.substr(10) + "after\n");
  EXPECT_EQ(passed_, "beforeafter\n");
  ASSERT_THAT(reports_.failures(), SizeIs(1));
  EXPECT_EQ(reports_.failures()[0].rank, 3);
  EXPECT_EQ(reports_.failures()[0].host, "n1");
  EXPECT_EQ(reports_.failures()[0].exit_code, 5);
  EXPECT_THAT(reports_.failures()[0].last_lines,
              ElementsAre("one", "two\x1e\"\\"));
}

TEST_F(ReportsTest, FirstRankThatFailedOnItsOwnCounts) {
  EXPECT_EQ(reports_.First(), std::nullopt);
  reports_.Take(ReportLine(Failure(0, 143, true)));
  EXPECT_EQ(reports_.First(), std::nullopt);
  reports_.Take(ReportLine(Failure(2, 6)) + ReportLine(Failure(1, 5)));
  EXPECT_EQ(reports_.First()->rank, 2);
}

TEST_F(ReportsTest, SuccessIsNoFailure) {
  reports_.Take(ReportLine({.rank = 0, .host = "a", .last_lines = {}}));
  reports_.Take(
      ReportLine({.rank = 1, .host = "a", .exit_code = 137, .last_lines = {}}));
  EXPECT_EQ(reports_.successes(), 1);
  EXPECT_EQ(reports_.failures().size(), 1U);
}

TEST_F(ReportsTest, RankWhoseWorldEndedIsTheCauseOnlyWithoutOthers) {
  RankFailure follower = Failure(0, 134);
  follower.reason = "rank 1 (n2) died.";
  reports_.Take(ReportLine(follower));
  EXPECT_THAT(DescribeFailure(reports_, ""),
              HasSubstr("hvdliterun: rank 1 (n2) died; then rank 0 on n1 "
                        "failed, by signal 6 (Aborted); its last lines:"));
  reports_.Take(ReportLine(Failure(2, 143, true)) + ReportLine(Failure(1, 3)));
  EXPECT_EQ(reports_.First()->rank, 1);
  EXPECT_EQ(reports_.First()->exit_code, 3);
}

TEST_F(ReportsTest, OutputOfAnotherRankReplacesMissingOutput) {
  RankFailure silent = Failure(1, 2);
  silent.last_lines = {};
  EXPECT_EQ(DescribeFailure(reports_, ""), "");
  reports_.Take(ReportLine(silent));
  EXPECT_EQ(DescribeFailure(reports_, ""),
            "hvdliterun: rank 1 on n1 failed first, with exit code 2, with no "
            "output\n");
  reports_.Take(ReportLine(Failure(2, 143, true)));  // it had to end
  RankFailure speaking = Failure(0, 139);
  speaking.last_lines = {"no such flag"};
  reports_.Take(ReportLine(speaking));
  EXPECT_EQ(DescribeFailure(reports_, "logs"),
            "hvdliterun: rank 1 on n1 failed first, with exit code 2, with no "
            "output; rank 0 on n1 failed, too, by signal 11 (Segmentation "
            "fault); its last lines:\n  | no such flag\n  complete output: "
            "logs/rank.0.log\n");
}

TEST(RunJobTest, LauncherThatRunsAfterAFailureIsEnded) {
  const base::Environment& environment = base::ProcessEnvironment();
  const Job job = {
      .ranks = 1,
      .allocation = "",
      .hosts = {},
      .machine_from = "",
      .machine = {},
      .variables = Variables(environment),
      .exec = {},
      .command = {"sh", "-c", "printf %s \"$1\" >&2; exec sleep infinity", "sh",
                  ReportLine(Failure(0, 4))},
      .launcher_environment = {},
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
  EXPECT_THAT(told, HasSubstr("a rank has failed, and the launcher still runs "
                              "after 1ms: ending the launcher\n"));
}

TEST_F(ReportsTest, TextThatResemblesAReportIsPassedOn) {
  reports_.Take("\x1ehvdliterun {\"rank\":1}\n\x1e other\n\x1ehvdl");
  reports_.End();
  EXPECT_EQ(passed_, "\x1ehvdliterun {\"rank\":1}\n\x1e other\n\x1ehvdl");
  EXPECT_THAT(reports_.failures(), IsEmpty());
}

TEST_F(ReportsTest, ReportsAlwaysFitIntoOneWrite) {
  RankFailure failure = Failure(1, 1);
  failure.last_lines.assign(20, std::string(5000, '\xff'));
  failure.last_lines.push_back("the last");
  const std::string line = ReportLine(failure);
  EXPECT_LE(line.size(), 4000u);
  reports_.Take(line);
  ASSERT_THAT(reports_.failures(), SizeIs(1));
  EXPECT_EQ(reports_.failures()[0].last_lines.back(), "the last");
}

}  // namespace
}  // namespace hvdlite::launch
