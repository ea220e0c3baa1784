#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/step_reporter.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StepReport Report(int64_t rank, int64_t interval, int64_t waits_us) {
  StepReport report = {.rank = rank,
                       .size = 2,
                       .host = "node" + std::to_string(rank),
                       .interval = interval,
                       .first_step = 10 * interval - 9,
                       .steps = 10,
                       .start_ns = interval * 1'000'000,
                       .parts = {},
                       .hidden_ns = 5'000,
                       .work = 640,
                       .cpu_ns = 7'000'000,
                       .buckets = 20,
                       .bytes = 1e6,
                       .use = {},
                       .facts = {{"cpus", int64_t{4}}, {"cpu_list", "0-3"}}};
  At(report.parts, StepPart::kComputing) = 10'000'000 - waits_us * 1000;
  At(report.parts, StepPart::kWaitForRanks) = waits_us * 1000;
  report.use.seconds = 1;
  report.use.threads = 2.5;
  return report;
}

TEST(StepReportTest, LineHoldsTheWholeReport) {
  const StepReport report = Report(1, 3, 500);
  const std::optional<StepReport> read =
      DecodeStepReport(EncodeStepReport(report));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->host, "node1");
  EXPECT_EQ(read->interval, 3);
  EXPECT_EQ(read->first_step, 21);
  EXPECT_EQ(read->steps, 10);
  EXPECT_EQ(read->parts, report.parts);
  EXPECT_EQ(read->hidden_ns, 5'000);
  EXPECT_EQ(read->work, 640);
  EXPECT_EQ(read->cpu_ns, 7'000'000);
  EXPECT_EQ(read->buckets, 20);
  EXPECT_EQ(read->use.threads, 2.5);
  EXPECT_EQ(NumberOf(read->facts, "cpus", 0), 4);
  EXPECT_EQ(TextOf(read->facts, "cpu_list"), "0-3");
}

TEST(StepReportTest, OtherTextsAreNoReports) {
  for (const char* const text :
       {"", "{}", "[1]", "hello", "{\"rank\":\"x\"}"}) {
    EXPECT_FALSE(DecodeStepReport(text).has_value()) << text;
  }
  const std::string line = EncodeStepReport(Report(0, 1, 0));
  EXPECT_FALSE(DecodeStepReport(line.substr(0, line.size() - 1)).has_value());
  StepReport empty = Report(0, 1, 0);
  empty.steps = 0;
  EXPECT_FALSE(DecodeStepReport(EncodeStepReport(empty)).has_value());
}

TEST(StepReportTest, RateExcludesEvaluation) {
  StepReports reports;
  StepReport report = Report(0, 1, 0);
  report.size = 1;
  At(report.parts, StepPart::kOther) = 30'000'000;
  EXPECT_EQ(reports.Add(report),
            "step 10: 1000.00 steps/s, 0.0 % of a step is exposed "
            "communication (without evaluation and commits: 75.0 % of the "
            "time)");
}

TEST(StepReportTest, LineComesWhenAllRanksHaveReported) {
  StepReports reports;
  EXPECT_FALSE(reports.Add(Report(0, 1, 2'000)).has_value());
  const std::optional<std::string> line = reports.Add(Report(1, 1, 0));
  EXPECT_EQ(line,
            "step 10: 1000.00 steps/s, 10.0 % of a step is exposed "
            "communication, 10.0 % is waiting for ranks; slowest: rank 1 "
            "(node1)");
  // The others still report after one rank has stopped.
  EXPECT_FALSE(reports.Add(Report(0, 2, 0)).has_value());
  EXPECT_THAT(reports.Add(Report(0, 3, 0)).value_or(""),
              HasSubstr("step 20: 1000.00 steps/s"));
}

TEST(StepReportTest, ReportsAreAnalyzedLikeATrace) {
  StepReports reports;
  for (int64_t interval = 1; interval <= 3; ++interval) {
    reports.Add(Report(0, interval, 2'000));
    reports.Add(Report(1, interval, 0));
  }
  const std::vector<Finding> findings =
      FindCauses(reports.Ranks(), reports.Analysis());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].cause, "straggler");
  EXPECT_EQ(findings[0].rank, 1);
  EXPECT_NEAR(findings[0].share, 0.2, 1e-9);
  EXPECT_EQ(reports.Analysis().buckets_per_step, 2);
}

// No rank is to blame for waits that all ranks share.
TEST(StepReportTest, RanksThatWaitAlikeAreLateInTurns) {
  StepReports reports;
  for (int64_t interval = 1; interval <= 3; ++interval) {
    reports.Add(Report(0, interval, 2'000));
    reports.Add(Report(1, interval, 1'800));
  }
  const std::vector<Finding> findings =
      FindCauses(reports.Ranks(), reports.Analysis());
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].cause, "late-in-turns");
  EXPECT_THAT(findings[0].remedy, HasSubstr("HVDLITE_TIMELINE"));
}

class StepReporterTest : public ::testing::Test {
 protected:
  StepReporterTest() {
    reporter_ = StepReporter::Start(
        {.rank = 1,
         .size = 2,
         .host = "node1",
         .facts = {{"cpus", int64_t{2}}},
         .interval = absl::Hours(1),
         .sample = nullptr,
         .tell = [this](const StepReport& report) { told_.push_back(report); }},
        clock_);
  }

  void RecordStep(int64_t work = 5) {
    const int64_t start_ns = clock_.NowNanos();
    reporter_->Record({.name = kWaitForGradients,
                       .track = kUserTrack,
                       .start_ns = start_ns + 600'000,
                       .duration_ns = 400'000});
    reporter_->Record(
        {.name = "ALLREDUCE_BUCKET",
         .track = kBucketTrack,
         .start_ns = start_ns + 500'000,
         .duration_ns = 500'000,
         .args = {{"bucket", ++bucket_}, {"bytes", int64_t{100}}}});
    clock_.Advance(absl::Milliseconds(1));
    reporter_->StepOver(clock_.NowNanos(), {.work = work, .cpu_us = 3});
  }

  base::FakeClock clock_;
  int64_t bucket_ = 0;
  std::vector<StepReport> told_;
  std::unique_ptr<StepReporter> reporter_;
};

TEST_F(StepReporterTest, ReportsSumsOfFinishedSteps) {
  for (int step = 0; step < 3; ++step) RecordStep();
  // Nothing is reported about an unfinished step.
  reporter_->Record({.name = "LOAD_BATCH", .track = kUserTrack});
  EXPECT_TRUE(reporter_->Close().ok());
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].rank, 1);
  EXPECT_EQ(told_[0].first_step, 1);
  EXPECT_EQ(told_[0].steps, 3);
  EXPECT_EQ(told_[0].parts, (PartTimes{1'800'000, 0, 0, 0, 0, 1'200'000, 0}));
  EXPECT_EQ(told_[0].hidden_ns, 300'000);
  EXPECT_EQ(told_[0].buckets, 3);
  EXPECT_EQ(told_[0].bytes, 300);
  EXPECT_EQ(told_[0].work, 15);
  EXPECT_EQ(told_[0].cpu_ns, 9'000);
  EXPECT_EQ(reporter_->dropped_events(), 0);
}

TEST_F(StepReporterTest, WorkIsUnknownIfOneStepsWorkIsUnknown) {
  RecordStep();
  RecordStep(/*work=*/-1);
  RecordStep();
  EXPECT_TRUE(reporter_->Close().ok());
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].work, -1);
  EXPECT_EQ(told_[0].cpu_ns, 9'000);
}

TEST_F(StepReporterTest, WithoutMemoryStepsAreDroppedAndTheThreadContinues) {
  const std::unique_ptr<StepReporter> reporter = StepReporter::Start(
      {.rank = 0,
       .size = 1,
       .host = "",
       .facts = {},
       .interval = absl::Hours(1),
       .sample = []() -> std::vector<TraceEvent> { throw std::bad_alloc(); },
       .tell = [](const StepReport&) { FAIL(); }},
      clock_);
  clock_.Advance(absl::Milliseconds(1));
  reporter->StepOver(clock_.NowNanos(), {});
  EXPECT_TRUE(reporter->Close().ok());
}

TEST_F(StepReporterTest, NoReportWithoutSteps) {
  reporter_->Record({.name = "LOAD_BATCH", .track = kUserTrack});
  EXPECT_TRUE(reporter_->Close().ok());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(StepReporterTest, EventsAreForwardedToATimeline) {
  std::vector<StepReport> passed;
  const std::shared_ptr<StepReporter> other = StepReporter::Start(
      {.rank = 0,
       .size = 1,
       .host = "",
       .facts = {},
       .interval = absl::Hours(1),
       .sample = nullptr,
       .tell = [&](const StepReport& report) { passed.push_back(report); }},
      clock_);
  reporter_->PassOnTo(other);
  RecordStep();
  reporter_->PassOnTo(nullptr);
  RecordStep();
  EXPECT_TRUE(other->Close().ok());
  ASSERT_THAT(passed, SizeIs(1));
  EXPECT_EQ(passed[0].steps, 1);
}

}  // namespace
}  // namespace hvdlite::timeline
