#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "studies/bench_report/program.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/benchmark/benchmark_report.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BenchReportTest : public ::testing::Test {
 protected:
  // A run with one benchmark "a"; its folder.
  std::string AddRun(double items_per_second) {
    const std::filesystem::path folder =
        directory_ / ("run" + std::to_string(runs_++));
    BenchmarkReport report;
    report.name = "a";
    report.plan = {.repeat = 2, .number = 1, .skip = 1, .batch_size = 1};
    const double seconds = 1 / items_per_second;
    report.train_seconds = {
        .samples = 1, .mean = seconds, .min = seconds, .max = seconds, .sd = 0};
    (void)WriteBenchmarkReport(folder, report);
    return folder;
  }

  std::vector<std::string> AddRuns(const std::vector<double>& values) {
    std::vector<std::string> folders;
    for (const double value : values) folders.push_back(AddRun(value));
    return folders;
  }

  std::string Target(double value) {
    const std::filesystem::path file = directory_ / "targets.json";
    std::ofstream(file) << nlohmann::json({{"a", value}});
    return file;
  }

  int Report(std::vector<std::string> flags,
             const std::vector<std::string>& folders) {
    flags.insert(flags.end(), folders.begin(), folders.end());
    return bench_report::RunBenchReport(flags, out_, err_);
  }

  const TemporaryDirectory directory_;
  int runs_ = 0;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(BenchReportTest, StableAndFastRunsPass) {
  EXPECT_EQ(Report({"--target", Target(8)}, AddRuns({16, 16, 16, 16})), 0);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("target"), HasSubstr("1.000000"),
                                HasSubstr("Performance")));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(BenchReportTest, SlowRunsDoNotPass) {
  EXPECT_EQ(Report({"--target", Target(32)}, AddRuns({16, 16, 16, 16})), 1);
}

TEST_F(BenchReportTest, WithoutTargetsOnlyTheDeviationDecides) {
  EXPECT_EQ(Report({}, AddRuns({16, 16, 16, 16})), 0);
  EXPECT_THAT(out_.str(),
              AllOf(Not(HasSubstr("target")), Not(HasSubstr("Performance"))));
  EXPECT_EQ(Report({}, AddRuns({16, 16, 32, 8})), 1);
}

TEST_F(BenchReportTest, JsonHasTheTableAndTheVerdict) {
  const std::string file = directory_ / "comparison.json";
  EXPECT_EQ(Report({"--json", file}, AddRuns({16, 16, 16, 16})), 0);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file)),
            nlohmann::json::parse(R"({
    "benchmarks": [{"name": "a", "target": null, "result": 16.0, "sd": 0.0,
                    "sd_percent": 0.0, "diff": null}],
    "deviation_quantile_percent": 0.0, "missing": [], "passes": true,
    "performance": null})"));
}

TEST_F(BenchReportTest, JsonThatExistsIsReplacedIfThatIsAskedForOnly) {
  const std::string file = directory_ / "comparison.json";
  std::ofstream(file) << "earlier";
  EXPECT_EQ(Report({"--json", file}, AddRuns({16, 16, 16, 16})), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--overwrite"));
  EXPECT_EQ(
      Report({"--json", file, "--overwrite"}, AddRuns({16, 16, 16, 16})), 0);
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(file))["passes"]);
}

TEST_F(BenchReportTest, JsonThatCannotBeWrittenIsWrongInput) {
  EXPECT_EQ(
      Report({"--json", "/nonexistent/a.json"}, AddRuns({16, 16, 16, 16})), 2);
  EXPECT_THAT(err_.str(), HasSubstr("/nonexistent/a.json"));
}

TEST_F(BenchReportTest, TooFewRunsAreWrongInput) {
  EXPECT_EQ(Report({}, AddRuns({16, 16, 16})), 2);
  EXPECT_THAT(err_.str(), HasSubstr("3 runs given; expected at least 4"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(BenchReportTest, MissingFolderIsWrongInput) {
  std::vector<std::string> folders = AddRuns({16, 16, 16});
  folders.push_back("/nonexistent/run");
  EXPECT_EQ(Report({}, folders), 2);
  EXPECT_THAT(err_.str(), HasSubstr("bench_report: cannot read the run's "
                                    "folder '/nonexistent/run'"));
}

TEST_F(BenchReportTest, WrongFlagsAreWrongInput) {
  EXPECT_EQ(Report({"--unknown"}, {}), 2);
  EXPECT_EQ(Report({}, {}), 2);
}

TEST_F(BenchReportTest, HelpIsNoError) {
  EXPECT_EQ(Report({"--help"}, {}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("--target"));
}

}  // namespace
}  // namespace hvdlite::trainers
