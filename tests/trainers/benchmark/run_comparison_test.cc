#include "trainers/benchmark/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

RunReport Report(const std::string& name, double items_per_second) {
  return {.file = "run/" + name + ".json",
          .name = name,
          .unique_id = "id",
          .version = "1",
          .failure = "",
          .items_per_second = items_per_second};
}

// A run per value.
std::vector<RunReports> RunsOf(const std::string& name,
                               const std::vector<double>& items_per_second) {
  std::vector<RunReports> runs;
  for (const double value : items_per_second) {
    runs.push_back({Report(name, value)});
  }
  return runs;
}

// The table in the README of milabench/report, with the acceptance that the
// suite drew: deviation quantile 1.1458 %, performance 0.2129, passed. (It
// prints the latter, a share, with a percent sign.)
Comparison PublishedTable() {
  return {.rows = {{"atari", 5.41, 7.424253, 0.055735},
                   {"cart", 2000.00, 2195.248475, 6.457116},
                   {"convnet", 178.76, 175.973774, 0.191682},
                   {"convnet_distributed", 276.10, 756.841070, 60.333975},
                   {"convnet_distributed_fp16", 330.41, 785.470579, 43.330802},
                   {"convnet_fp16", 262.56, 329.347550, 0.770485},
                   {"dcgan_all", 139.29, 274.608760, 1.361280},
                   {"dcgan", 115.52, 147.794385, 0.632454},
                   {"fast_style", 156.75, 146.285007, 0.218744},
                   {"loader", 1200.00, 1188.224303, 62.070805},
                   {"recom", 20650.19, 20802.705368, 103.476919},
                   {"reso", 138.34, 178.694817, 0.920870},
                   {"ssd", 59.96, 49.263719, 0.203476},
                   {"toy_lstm", 2.65, 1.254635, 0.007228},
                   {"toy_reg", 368820.18, 215482.487073, 3745.776792},
                   {"translator", 223.47, 212.040509, 0.443492},
                   {"vae", 7972.69, 5931.232565, 26.450238},
                   {"wlm", 1440.87, 1365.497700, 2.910483},
                   {"wlmfp16", 3793.37, 4649.460342, 18.698980}},
          .missing = {}};
}

TEST(RunComparisonTest, PublishedTableHasItsPublishedVerdict) {
  const Comparison table = PublishedTable();
  EXPECT_NEAR(table.rows[0].sd_percent(), 0.7507, 5e-5);
  EXPECT_NEAR(*table.rows[0].diff(), 0.372320, 5e-7);
  const Acceptance acceptance = Judge(table);
  EXPECT_NEAR(*acceptance.deviation_quantile_percent, 1.1458, 5e-5);
  EXPECT_NEAR(*acceptance.performance, 0.2129, 5e-5);
  EXPECT_TRUE(acceptance.passes());
  EXPECT_THAT(
      ComparisonText(table),
      AllOf(HasSubstr("\nDeviation quantile (80%) |  +1.1458 % | pass\n"),
            HasSubstr("\nPerformance              |    +0.2129 | pass\n")));
}

TEST(RunComparisonTest, BestAndWorstRunDoNotCountInTheResultButInTheDeviation) {
  // Left are 90 and 110; squared distances from the mean 100: 1600 100 100
  // 1600, their sum over 3.
  const ComparisonRow row = MakeRow("a", {60, 90, 110, 140}, 80);
  EXPECT_DOUBLE_EQ(row.result, 100);
  EXPECT_DOUBLE_EQ(row.sd, std::sqrt(3400.0 / 3));
  EXPECT_DOUBLE_EQ(row.sd_percent(), std::sqrt(3400.0 / 3));
  EXPECT_DOUBLE_EQ(*row.diff(), 0.25);
  EXPECT_EQ(MakeRow("a", {60, 90, 110, 140}, std::nullopt).diff(),
            std::nullopt);
  EXPECT_THROW(MakeRow("a", {1, 2, 3}, 1), std::invalid_argument);
}

TEST(RunComparisonTest, SeveralReportsOfARunCountByTheirMean) {
  std::vector<RunReports> runs = RunsOf("a", {10, 20, 30, 40});
  runs[1].push_back(Report("a", 60));  // 40 on the mean
  const Comparison comparison = Compare(runs, std::nullopt);
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(comparison.rows[0].result, 35);
  EXPECT_THAT(comparison.missing, IsEmpty());
}

TEST(RunComparisonTest, FewerThanFourRunsAreRefused) {
  EXPECT_THAT(
      [] {
        Compare(RunsOf("a", {1, 1, 1}), std::nullopt);
      },
      ThrowsMessage<support::InputError>(
          AllOf(HasSubstr("3 runs given"), HasSubstr("at least 4"))));
}

TEST(RunComparisonTest, BenchmarkMissingInARunIsNamedAndDoesNotPass) {
  std::vector<RunReports> runs = RunsOf("a", {10, 10, 10, 10, 10});
  for (const size_t run : {0, 1, 2, 4}) runs[run].push_back(Report("b", 20));
  const Comparison comparison = Compare(runs, std::nullopt);
  ASSERT_EQ(comparison.rows.size(), 2U);
  EXPECT_EQ(comparison.rows[1].result, 20);
  EXPECT_THAT(comparison.missing, ElementsAre("b is missing in run 4"));
  EXPECT_FALSE(Judge(comparison).passes());
}

TEST(RunComparisonTest, BenchmarkOfTooFewRunsHasNoRow) {
  std::vector<RunReports> runs = RunsOf("a", {10, 10, 10, 10});
  for (const size_t run : {0, 1, 2}) runs[run].push_back(Report("b", 20));
  const Comparison comparison = Compare(runs, std::nullopt);
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_EQ(comparison.rows[0].name, "a");
  EXPECT_THAT(
      comparison.missing,
      ElementsAre("b is missing in run 4",
                  "b has no result: 3 of its runs succeeded, 4 are needed"));
}

TEST(RunComparisonTest, FailedRunIsNamedAndDoesNotCount) {
  std::vector<RunReports> runs = RunsOf("a", {10, 10, 10, 10, 1000});
  runs[4][0].failure = "a loss is not finite";
  const Comparison comparison = Compare(runs, std::nullopt);
  ASSERT_EQ(comparison.rows.size(), 1U);
  EXPECT_EQ(comparison.rows[0].result, 10);
  EXPECT_EQ(comparison.rows[0].sd, 0);
  EXPECT_THAT(comparison.missing,
              ElementsAre("a failed in run 5: a loss is not finite"));
  EXPECT_FALSE(Judge(comparison).passes());
}

TEST(RunComparisonTest, RunWithAFailedAndAGoodReportDoesNotCount) {
  std::vector<RunReports> runs = RunsOf("a", {10, 10, 10, 10, 1000});
  runs[4].push_back(Report("a", 0));
  runs[4][1].failure = "a loss is not finite";
  const Comparison comparison = Compare(runs, std::nullopt);
  EXPECT_EQ(comparison.rows[0].sd, 0);
  EXPECT_THAT(comparison.missing,
              ElementsAre("a failed in run 5: a loss is not finite"));
}

TEST(RunComparisonTest, RunsWithoutAnyResultDoNotPass) {
  std::vector<RunReports> runs = RunsOf("a", {1, 1, 1, 1});
  for (RunReports& run : runs) run[0].failure = "a loss is not finite";
  const Acceptance acceptance = Judge(Compare(runs, std::nullopt));
  EXPECT_EQ(acceptance.deviation_quantile_percent, std::nullopt);
  EXPECT_FALSE(acceptance.deviation_passes());
  EXPECT_FALSE(acceptance.passes());
}

TEST(RunComparisonTest, RunsOfDifferentArgumentsOrVersionsAreRefused) {
  std::vector<RunReports> runs = RunsOf("a", {1, 1, 1, 1});
  runs[2][0].unique_id = "other";
  EXPECT_THAT([&] { Compare(runs, std::nullopt); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("run/a.json"), HasSubstr("unique_id other"),
                        HasSubstr("expected id"))));
  runs = RunsOf("a", {1, 1, 1, 1});
  runs[3][0].version = "2";
  EXPECT_THAT([&] { Compare(runs, std::nullopt); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("version 2"), HasSubstr("expected 1"))));
}

TEST(RunComparisonTest, BenchmarkWithoutATargetIsRefused) {
  EXPECT_THAT(
      [] {
        Compare(RunsOf("a", {1, 1, 1, 1}), BenchmarkTargets{{"b", 1}});
      },
      ThrowsMessage<support::InputError>(
          AllOf(HasSubstr("none for a"), HasSubstr("run/a.json"))));
}

TEST(RunComparisonTest, TargetWithoutABenchmarkIsNamedAndDoesNotPass) {
  const Comparison comparison =
      Compare(RunsOf("a", {1, 1, 1, 1}), BenchmarkTargets{{"a", 1}, {"b", 1}});
  EXPECT_THAT(comparison.missing,
              ElementsAre("b has a target, but no run has it"));
  EXPECT_FALSE(Judge(comparison).passes());
}

TEST(VerdictTest, DeviationPassesBelowFivePercentOfFourFifthsOfTheRows) {
  Comparison comparison;
  for (const double sd : {1.0, 1.0, 1.0, 1.0, 4.99, 90.0}) {
    comparison.rows.push_back({"a", std::nullopt, 100, sd});
  }
  EXPECT_DOUBLE_EQ(*Judge(comparison).deviation_quantile_percent, 4.99);
  EXPECT_TRUE(Judge(comparison).passes());
  comparison.rows[4].sd = 5;
  EXPECT_FALSE(Judge(comparison).passes());
}

TEST(VerdictTest, PerformancePassesFromZeroOn) {
  Comparison comparison;
  comparison.rows = {{"a", 100, 150, 0}, {"b", 100, 50, 0}};
  EXPECT_DOUBLE_EQ(*Judge(comparison).performance, 0);
  EXPECT_TRUE(Judge(comparison).passes());
  comparison.rows[1].result = 49;
  EXPECT_FALSE(Judge(comparison).passes());
}

TEST(ComparisonTextTest, HasALinePerBenchmarkAndTheVerdict) {
  const Comparison comparison = {
      .rows = {{"resnet50", 10, 12.5, 1}, {"a", 2000, 1000, 2}},
      .missing = {"b is missing in run 4"}};
  EXPECT_EQ(ComparisonText(comparison),
            // clang-format off
            "bench           target          result            sd       sd%       diff\n"
            "resnet50         10.00       12.500000      1.000000    8.0000   0.250000\n"
            "a              2000.00     1000.000000      2.000000    0.2000  -0.500000\n"
            "\n"
            "Missing: b is missing in run 4\n"
            "\n"
            "Statistic                |      Value | Verdict\n"
            "Benchmarks in all runs   |            | FAIL\n"
            "Deviation quantile (80%) |  +6.4400 % | FAIL\n"
            "Performance              |    -0.1250 | FAIL\n"
            "All                      |            | FAIL\n");
  // clang-format on
}

TEST(ComparisonTextTest, LeavesOutTheTargetsColumnsWithoutTargets) {
  const Comparison comparison = {.rows = {{"a", std::nullopt, 1000, 2}},
                                 .missing = {}};
  EXPECT_EQ(ComparisonText(comparison),
            "bench          result            sd       sd%\n"
            "a         1000.000000      2.000000    0.2000\n"
            "\n"
            "Statistic                |      Value | Verdict\n"
            "Benchmarks in all runs   |            | pass\n"
            "Deviation quantile (80%) |  +0.2000 % | pass\n"
            "All                      |            | pass\n");
}

TEST(ComparisonTextTest, TellsThatThereAreNoResults) {
  EXPECT_THAT(ComparisonText({.rows = {}, .missing = {"a has no result"}}),
              HasSubstr("Deviation quantile (80%) |       none | FAIL\n"));
}

}  // namespace
}  // namespace hvdlite::trainers
