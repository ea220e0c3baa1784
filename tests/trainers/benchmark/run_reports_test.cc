#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/benchmark/benchmark_report.h"
#include "trainers/benchmark/run_comparison.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

void WriteReportText(const std::filesystem::path& file,
                     const std::string& text) {
  std::ofstream(file) << text;
}

// Matches what ReadRunReports throws for a folder with this text in a.json.
class RunReportsTest : public ::testing::Test {
 protected:
  auto Reading(const std::string& text) {
    WriteReportText(directory_ / "a.json", text);
    return [this] { ReadRunReports(directory_.path()); };
  }

  const TemporaryDirectory directory_;
};

TEST_F(RunReportsTest, ReadsWhatWasWritten) {
  BenchmarkReport report;
  report.name = "resnet50";
  report.version = "1.2";
  report.plan = {.repeat = 2, .number = 5, .skip = 1, .batch_size = 128};
  report.train_seconds = {
      .samples = 1, .mean = 10, .min = 10, .max = 10, .sd = 0};
  (void)WriteBenchmarkReport(directory_.path(), report);
  report.first_non_finite_batch = 3;
  (void)WriteBenchmarkReport(directory_.path(), report);

  const RunReports read = ReadRunReports(directory_.path());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].file, directory_ / "resnet50.json");
  EXPECT_EQ(read[0].name, "resnet50");
  EXPECT_EQ(read[0].unique_id, UniqueId(report));
  EXPECT_EQ(read[0].version, "1.2");
  EXPECT_EQ(read[0].failure, "");
  EXPECT_EQ(read[0].items_per_second, 64);
  EXPECT_EQ(read[1].failure, "the loss of batch 3 is not finite");
}

TEST_F(RunReportsTest, FilesAreReadInTheOrderOfTheirNamesOthersAreNot) {
  const std::string rest =
      R"(", "unique_id": "1", "version": "1", "train_item": {"avg": 1}}])";
  WriteReportText(directory_ / "b.json", R"([{"name": "second)" + rest);
  WriteReportText(directory_ / "a.json", R"([{"name": "first)" + rest);
  WriteReportText(directory_ / "summary.txt", "PASSED\n");
  const RunReports read = ReadRunReports(directory_.path());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "first");
  EXPECT_EQ(read[1].name, "second");
}

TEST_F(RunReportsTest, FoldersInTheFolderAreReadToo) {
  for (const std::string folder : {"instance0", "instance1"}) {
    const std::filesystem::path inner = directory_ / folder;
    std::filesystem::create_directory(inner);
    WriteReportText(inner / "a.json",
                    R"([{"name": ")" + folder +
                        R"(", "unique_id": "1", "version": "1", )"
                        R"("train_item": {"avg": 1}}])");
  }
  const RunReports read = ReadRunReports(directory_.path());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "instance0");
  EXPECT_EQ(read[1].name, "instance1");
}

TEST_F(RunReportsTest, NullAmongTheLossesIsAFailure) {
  Reading(R"([{"name": "a", "unique_id": "1", "version": "1",
               "batch_loss": [0.5, null], "train_item": {"avg": 1}}])")();
  EXPECT_EQ(ReadRunReports(directory_.path())[0].failure,
            "a loss is not finite");
}

TEST_F(RunReportsTest, IncompleteReportIsAFailureThatNeedsNoResult) {
  Reading(R"([{"name": "a", "unique_id": "1", "version": "1",
               "completed": false}])")();
  EXPECT_EQ(ReadRunReports(directory_.path())[0].failure,
            "it did not complete");
}

TEST_F(RunReportsTest, MissingFolderIsRefused) {
  EXPECT_THAT([] { ReadRunReports("/nonexistent/run"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("/nonexistent/run"),
                        HasSubstr("No such file or directory"))));
}

TEST_F(RunReportsTest, FolderWithoutReportsIsRefused) {
  EXPECT_THAT(
      [&] { ReadRunReports(directory_.path()); },
      ThrowsMessage<support::InputError>(AllOf(
          HasSubstr("no *.json"), HasSubstr(directory_.path().string()))));
}

TEST_F(RunReportsTest, FileThatCannotBeReadIsRefused) {
  std::filesystem::create_directory(directory_ / "a.json");
  EXPECT_THAT(
      [&] { ReadRunReports(directory_.path()); },
      ThrowsMessage<support::InputError>(AllOf(
          HasSubstr("cannot read"), HasSubstr("a.json"), HasSubstr("directory"),
          HasSubstr("a list of benchmark reports"))));
}

TEST_F(RunReportsTest, TruncatedFileIsRefusedNamingTheOffset) {
  EXPECT_THAT(Reading(R"([{"name": "a"})"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("a.json"), HasSubstr("not JSON at offset 14"),
                        HasSubstr("expected a list of benchmark reports"))));
}

TEST_F(RunReportsTest, WrongByteIsRefusedNamingItsOffset) {
  EXPECT_THAT(Reading("[?]"), ThrowsMessage<support::InputError>(
                                  HasSubstr("not JSON at offset 1")));
}

TEST_F(RunReportsTest, EmptyFileIsRefusedNamingTheOffset) {
  EXPECT_THAT(Reading(""), ThrowsMessage<support::InputError>(
                               HasSubstr("not JSON at offset 0")));
}

TEST_F(RunReportsTest, JsonWithoutAListIsRefused) {
  EXPECT_THAT(Reading("{}"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("a.json"), HasSubstr("type object"),
                        HasSubstr("expected a list of benchmark reports"))));
}

TEST_F(RunReportsTest, ReportThatIsNoObjectIsRefused) {
  EXPECT_THAT(Reading("[5]"), ThrowsMessage<support::InputError>(AllOf(
                                  HasSubstr("report 0 of"), HasSubstr("a.json"),
                                  HasSubstr("expected an object"))));
}

TEST_F(RunReportsTest, ReportWithoutANameIsRefused) {
  EXPECT_THAT(Reading(R"([{"version": "1"}])"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("report 0 of"), HasSubstr("a.json"),
                        HasSubstr("has no name"))));
  EXPECT_THAT(Reading(R"([{"name": 5}])"),
              ThrowsMessage<support::InputError>(HasSubstr("expected a text")));
  EXPECT_THAT(
      Reading(R"([{"name": "a"}])"),
      ThrowsMessage<support::InputError>(HasSubstr("has no unique_id")));
  EXPECT_THAT(Reading(R"([{"name": "a", "unique_id": "1"}])"),
              ThrowsMessage<support::InputError>(HasSubstr("has no version")));
}

TEST_F(RunReportsTest, ReportWithoutAPositiveResultIsRefused) {
  const std::string start =
      R"([{"name": "a", "unique_id": "1", "version": "1")";
  EXPECT_THAT(Reading(start + "}]"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("report 0 of"), HasSubstr("train_item.avg"),
                        HasSubstr("expected a positive number"))));
  EXPECT_THAT(Reading(start + R"(, "train_item": 5}])"),
              ThrowsMessage<support::InputError>(HasSubstr("train_item.avg")));
  EXPECT_THAT(
      Reading(start + R"(, "train_item": {"avg": 0}}])"),
      ThrowsMessage<support::InputError>(HasSubstr("has 0 as train_item.avg")));
  EXPECT_THAT(Reading(start + R"(, "train_item": {"avg": null}}])"),
              ThrowsMessage<support::InputError>(
                  HasSubstr("has null as train_item.avg")));
}

TEST_F(RunReportsTest, CompletedThatIsNeitherTrueNorFalseIsRefused) {
  EXPECT_THAT(Reading(R"([{"name": "a", "unique_id": "1", "version": "1",
                           "completed": "yes"}])"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("completed"), HasSubstr("true or false"))));
}

class BenchmarkTargetsTest : public ::testing::Test {
 protected:
  auto Reading(const std::string& text) {
    WriteReportText(file_, text);
    return [this] { ReadBenchmarkTargets(file_); };
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / "targets.json";
};

TEST_F(BenchmarkTargetsTest, AreReadByName) {
  Reading(R"({"resnet50": 12.5, "cart": 2000})")();
  EXPECT_THAT(ReadBenchmarkTargets(file_),
              ElementsAre(Pair("cart", 2000), Pair("resnet50", 12.5)));
}

TEST_F(BenchmarkTargetsTest, MissingFileIsRefused) {
  EXPECT_THAT(
      [&] { ReadBenchmarkTargets(file_); },
      ThrowsMessage<support::InputError>(AllOf(
          HasSubstr(file_.string()), HasSubstr("No such file or directory"),
          HasSubstr("expected an object"))));
}

TEST_F(BenchmarkTargetsTest, JsonWithoutAnObjectIsRefused) {
  EXPECT_THAT(Reading("[1]"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("type array"), HasSubstr("targets.json"),
                        HasSubstr("expected an object"))));
}

TEST_F(BenchmarkTargetsTest, TargetThatIsNotPositiveIsRefused) {
  EXPECT_THAT(Reading(R"({"cart": "fast"})"),
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("target of cart"), HasSubstr("targets.json"),
                        HasSubstr("expected a positive number"))));
  EXPECT_THAT(Reading(R"({"cart": 0})"),
              ThrowsMessage<support::InputError>(HasSubstr("is 0; expected")));
}

}  // namespace
}  // namespace hvdlite::trainers
