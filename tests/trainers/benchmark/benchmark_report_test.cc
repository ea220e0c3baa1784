#include "trainers/benchmark/benchmark_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"

namespace hvdlite::trainers {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Observations of 4 and 16 seconds, each of 5 batches of 128 items.
BenchmarkReport Report() {
  BenchmarkReport report;
  report.name = "resnet50";
  report.arch = "resnet50_v1.5";
  report.version = "1.2";
  report.instance = 3;
  report.devices = 2;
  report.host = {.host = "node7", .processor = "A64FX", .cores = 12};
  report.arguments = {{"lr", 0.1},
                      {"nesterov", true},
                      {"seed", int64_t{7}},
                      {"opt_level", std::string("O0")}};
  report.plan = {.repeat = 12, .number = 5, .skip = 10, .batch_size = 128};
  report.train_seconds = {
      .samples = 2, .mean = 10, .min = 4, .max = 16, .sd = 6};
  report.batch_losses = {2.5, 1.5};
  return report;
}

class BenchmarkReportTest : public ::testing::Test {
 protected:
  // Expects an error with a message that has these parts.
  void ExpectRefused(const std::filesystem::path& file,
                     const std::vector<std::string>& parts) const {
    try {
      (void)WriteBenchmarkReport(file, Report());
      ADD_FAILURE() << "is written";
    } catch (const support::InputError& error) {
      for (const std::string& part : parts) {
        EXPECT_THAT(error.what(), HasSubstr(part));
      }
    }
  }

  const TemporaryDirectory directory_;
};

TEST_F(BenchmarkReportTest, HasTheFieldsOfMilasBenchmarks) {
  EXPECT_EQ(WriteBenchmarkReport(directory_ / "out", Report()),
            BenchmarkStatus::kPassed);
  const json list = json::parse(FileBytes(directory_ / "out/resnet50.json"));
  EXPECT_EQ(list, json::parse(R"([{
    "arch": "resnet50_v1.5", "batch_loss": [2.5, 1.5], "batch_size": 128,
    "completed": true, "cpu": "A64FX", "cpu_cores": 12, "cuda": false,
    "devices": 2, "epoch_loss": [], "gpu": null, "hostname": "node7",
    "jr_id": 3, "lr": 0.1, "metrics": {}, "name": "resnet50", "nesterov": true, "number": 5, "opt_level": "O0",
    "repeat": 12, "seed": 7, "unique_id": ")" +
                              UniqueId(Report()) + R"(",
    "train": {"avg": 10.0, "count": 2, "max": 16.0, "min": 4.0, "sd": 6.0,
              "unit": "s"},
    "train_item": {"avg": 64.0, "max": 160.0, "min": 40.0, "range": 120.0,
                   "unit": "items/sec"},
    "vcd": 3, "version": "1.2"}])"));
}

TEST_F(BenchmarkReportTest, SummaryHasALinePerReport) {
  BenchmarkReport failed = Report();
  failed.name = "vgg";
  failed.first_non_finite_batch = 17;
  (void)WriteBenchmarkReport(directory_.path(), Report());
  (void)WriteBenchmarkReport(directory_.path(), failed);
  EXPECT_EQ(FileBytes(directory_ / "summary.txt"),
            "PASSED | resnet50 | 64.00 items/sec (40.00 to 160.00) | 2 "
            "observations of 5 batches of 128 items\n"
            "FAILED | vgg | the loss of batch 17 is not finite\n");
}

TEST_F(BenchmarkReportTest, IsAppendedToTheListInTheFile) {
  const std::filesystem::path file = directory_ / "all.json";
  (void)WriteBenchmarkReport(file, Report());
  BenchmarkReport second = Report();
  second.name = "vgg";
  (void)WriteBenchmarkReport(file, second);
  const json list = json::parse(FileBytes(file));
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["name"], "resnet50");
  EXPECT_EQ(list[1]["name"], "vgg");
}

TEST_F(BenchmarkReportTest, NonFiniteLossFailsEvenWithoutObservations) {
  BenchmarkRecorder recorder({.repeat = 2, .number = 2, .skip = 1});
  recorder.BeginObservation();
  recorder.AddBatch(0.5);
  recorder.AddBatch(std::numeric_limits<double>::quiet_NaN());
  BenchmarkReport report = ReportOf(recorder);
  report.name = "resnet50";
  EXPECT_EQ(WriteBenchmarkReport(directory_.path(), report),
            BenchmarkStatus::kFailed);
  const json written = json::parse(FileBytes(directory_ / "resnet50.json"))[0];
  EXPECT_EQ(written["completed"], false);
  EXPECT_EQ(written["failure"], "the loss of batch 1 is not finite");
  EXPECT_EQ(written["batch_loss"], json::parse("[0.5, null]"));
  EXPECT_FALSE(written.contains("train"));
  EXPECT_FALSE(written.contains("train_item"));
}

TEST_F(BenchmarkReportTest, RunWithoutObservationsFails) {
  BenchmarkReport report = Report();
  report.train_seconds = {};
  EXPECT_EQ(WriteBenchmarkReport(directory_.path(), report),
            BenchmarkStatus::kFailed);
  EXPECT_EQ(FileBytes(directory_ / "summary.txt"),
            "FAILED | resnet50 | no observation was made\n");
}

TEST_F(BenchmarkReportTest, CopiesTheRecordedValues) {
  double now_seconds = 0;
  BenchmarkRecorder recorder(
      {.repeat = 2, .number = 1, .skip = 1, .batch_size = 3},
      [&] { return now_seconds += 2; });
  for (const double loss : {2.5, 1.5}) {
    recorder.BeginObservation();
    recorder.AddBatch(loss);
  }
  const BenchmarkReport report = ReportOf(recorder);
  EXPECT_EQ(report.plan.batch_size, 3);
  EXPECT_EQ(report.train_seconds.samples, 1);
  EXPECT_EQ(report.train_seconds.mean, 2);
  EXPECT_THAT(report.batch_losses, ::testing::ElementsAre(2.5, 1.5));
  EXPECT_EQ(report.first_non_finite_batch, std::nullopt);
}

TEST_F(BenchmarkReportTest, ArgumentsDoNotHideFields) {
  BenchmarkReport report = Report();
  report.arguments["name"] = std::string("other");
  (void)WriteBenchmarkReport(directory_.path(), report);
  EXPECT_EQ(json::parse(FileBytes(directory_ / "resnet50.json"))[0]["name"],
            "resnet50");
}

TEST(UniqueIdTest, DiffersBetweenExperiments) {
  const std::string id = UniqueId(Report());
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{16}"));
  BenchmarkReport other = Report();
  other.name = "vgg";
  EXPECT_NE(UniqueId(other), id);
  other = Report();
  other.arch = "resnet50";
  EXPECT_NE(UniqueId(other), id);
  other = Report();
  other.plan.number = 6;
  EXPECT_NE(UniqueId(other), id);
  other = Report();
  other.plan.repeat = 13;
  EXPECT_NE(UniqueId(other), id);
  other = Report();
  other.arguments["lr"] = 0.2;
  EXPECT_NE(UniqueId(other), id);
}

TEST(UniqueIdTest, IgnoresArgumentsThatDependOnTheMachine) {
  const std::string id = UniqueId(Report());
  BenchmarkReport other = Report();
  other.host = {.host = "node8", .processor = "EPYC"};
  other.plan.batch_size = 64;
  other.arguments["seed"] = int64_t{8};
  other.arguments["threads"] = int64_t{48};
  other.arguments["data_dir"] = std::string("/data");
  other.train_seconds.mean = 11;
  EXPECT_EQ(UniqueId(other), id);
}

TEST(UniqueIdTest, IsTheSameInEveryBuild) {
  // FNV-1a of "a", "b", "2" and "1", each with a zero after it, computed
  // separately.
  BenchmarkReport report;
  report.name = "a";
  report.arch = "b";
  report.plan = {.repeat = 2, .number = 1};
  EXPECT_EQ(UniqueId(report), "2ac4b3f645a3471d");
}

TEST_F(BenchmarkReportTest, OtherFileIsAnErrorAndStaysUnchanged) {
  const std::filesystem::path file = directory_ / "resnet50.json";
  WriteFileBytes(file, "[{},");
  ExpectRefused(directory_.path(), {file, "not JSON at offset 4",
                                    "expected a list of reports to append to"});
  EXPECT_EQ(FileBytes(file), "[{},");
  WriteFileBytes(file, "{}");
  ExpectRefused(directory_.path(),
                {file, "JSON of type object", "expected a list"});
}

TEST_F(BenchmarkReportTest, UnwritableFileIsAnError) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  ExpectRefused(directory_.path(), {"cannot write", "resnet50.json"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));

  WriteFileBytes(directory_ / "file", "");
  ExpectRefused(directory_ / "file/out", {"cannot create", "file/out"});
  std::filesystem::create_directories(directory_ / "summary.txt");
  ExpectRefused(directory_.path(), {"cannot write", "summary.txt"});
}

TEST(HostTest, ThisMachineHasANameAndAProcessor) {
  EXPECT_FALSE(support::ThisMachine().host.empty());
  EXPECT_FALSE(support::ThisMachine().processor.empty());
}

}  // namespace
}  // namespace hvdlite::trainers
