#include "tools/scaling_sweep/run/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/sweep_folder.h"
#include "tools/scaling_sweep/run/program_report.h"
#include "tools/scaling_sweep/run/spec.h"
#include "tools/scaling_sweep/run/sweep_runner.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Spec SpecFor(const std::string& more = "") {
  return ParseSpec(
             "name: 't' command: ['p', '{report}'] repeats: 1 scaling: STRONG "
             "ranks: [1, 2] " +
                 more,
             "s")
      .value();
}

Sample SampleOf(const std::string& configuration, int repeat) {
  Sample sample;
  sample.configuration = configuration;
  sample.repeat = repeat;
  sample.ranks = 2;
  sample.oversubscribed = true;
  sample.threads_used = 3;
  sample.host = "h\"1";
  sample.cores = 4;
  sample.start_time = "2026-01-31T12:00:00Z";
  sample.command = {"a", "b c"};
  sample.environment = {{"A", "b"}};
  sample.seconds = 1.5;
  sample.items_per_second = 0.1 + 0.2;
  sample.report = "runs/x/report.json";
  return sample;
}

void WriteTo(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::app) << text;
}

std::string TextOf(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(SampleTest, ComesBackAsItWasWritten) {
  Sample sample = SampleOf("c", 3);
  EXPECT_EQ(ParseSample(ToJsonLine(sample)).value(), sample);
  sample.items_per_second.reset();
  sample.failure = "exit code 1";
  EXPECT_EQ(ParseSample(ToJsonLine(sample)).value(), sample);
  EXPECT_EQ(ToJsonLine(sample).find('\n'), std::string::npos);
  EXPECT_FALSE(ParseSample("{}").ok());
}

TEST(ResultsFileTest, GoesOnWithWhatIsThere) {
  const SweepFolder folder;
  {
    auto file = ResultsFile::Open(folder / "d", SpecFor());
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Append(SampleOf("a", 0)).ok());
    // Is on the disk at once.
    EXPECT_THAT(ReadResults(folder / "d")->samples, SizeIs(1));
  }
  auto file = ResultsFile::Open(folder / "d", SpecFor());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(SampleOf("a", 1)).ok());
  const auto results = ReadResults(folder / "d");
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->samples,
              ElementsAre(SampleOf("a", 0), SampleOf("a", 1)));
  EXPECT_EQ(Identity(results->spec), Identity(SpecFor()));
}

TEST(ResultsFileTest, AFullDiskIsNoErrorOfTheUser) {
  const SweepFolder folder;
  auto file = ResultsFile::Open(folder.path(), SpecFor());
  ASSERT_TRUE(file.ok()) << file.status();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(folder / kResultsName);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status status = file->Append(SampleOf("a", 0));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write '"));
  EXPECT_TRUE(file->samples().empty());
}

TEST(ResultsFileTest, ACutLastLineIsForgotten) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor())
                  ->Append(SampleOf("a", 0))
                  .ok());
  WriteTo(folder / kResultsName, ToJsonLine(SampleOf("a", 1)).substr(0, 40));
  EXPECT_THAT(ReadResults(folder.path())->samples, SizeIs(1));
  auto file = ResultsFile::Open(folder.path(), SpecFor());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append(SampleOf("a", 2)).ok());
  EXPECT_THAT(ReadResults(folder.path())->samples,
              ElementsAre(SampleOf("a", 0), SampleOf("a", 2)));
}

TEST(ResultsFileTest, AFileThatWasCutInItsFirstLineBeginsAnew) {
  const SweepFolder folder;
  WriteTo(folder / kResultsName, "{\"program\": \"scal");
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
  EXPECT_TRUE(ReadResults(folder.path()).ok());
}

TEST(ResultsFileTest, AnotherSpecWithoutASampleIsReplaced) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor("threads: 2")).ok());
  EXPECT_EQ(ReadResults(folder.path())->spec.threads(0), 2);
}

TEST(ResultsFileTest, AnotherSpecsResultsAreRefusedAndKept) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor())
                  ->Append(SampleOf("a", 0))
                  .ok());
  const std::string before = TextOf(folder / kResultsName);
  const auto other = ResultsFile::Open(folder.path(), SpecFor("threads: 2"));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("another SPEC"));
  EXPECT_EQ(TextOf(folder / kResultsName), before);
}

TEST(ResultsFileTest, MoreRepeatsContinue) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
  Spec more = SpecFor();
  more.set_repeats(7);
  EXPECT_TRUE(ResultsFile::Open(folder.path(), more).ok());
}

TEST(ResultsFileTest, OtherWorldsContinue) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor())
                  ->Append(SampleOf("a", 0))
                  .ok());
  Spec more = SpecFor();
  more.add_ranks(64);
  for (int time = 0; time < 2; ++time) {  // told once
    ASSERT_TRUE(ResultsFile::Open(folder.path(), more).ok());
    const std::string text = TextOf(folder / kResultsName);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  }
  const auto results = ReadResults(folder.path());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->spec.ranks().rbegin()[0], 64);
  EXPECT_THAT(results->samples, ElementsAre(SampleOf("a", 0)));
}

TEST(ResultsFileTest, OnlyOneWrites) {
  const SweepFolder folder;
  {
    auto first = ResultsFile::Open(folder.path(), SpecFor());
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = ResultsFile::Open(folder.path(), SpecFor());
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr("another scaling_sweep writes here"));
    EXPECT_TRUE(ReadResults(folder.path()).ok());
    EXPECT_TRUE(first->Append(SampleOf("a", 0)).ok());
  }
  EXPECT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
}

TEST(ResultsFileTest, ErrorsNameFileAndLine) {
  const SweepFolder folder;
  ASSERT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
  WriteTo(folder / kResultsName, "nonsense\n");
  EXPECT_THAT(std::string(ReadResults(folder.path()).status().message()),
              HasSubstr("results.jsonl': line 2 is no sample"));
  EXPECT_TRUE(absl::IsNotFound(ReadResults(folder / "none").status()));
}

TEST(ResultsFileTest, NumbersThatCannotBeAreErrorsThatNameTheKeyAndTheFile) {
  const auto with = [](const std::string& key, const std::string& value) {
    const SweepFolder folder;
    EXPECT_TRUE(ResultsFile::Open(folder.path(), SpecFor()).ok());
    const std::string line = ToJsonLine(SampleOf("a", 0));
    const size_t at = line.find("\"" + key + "\":") + key.size() + 3;
    WriteTo(folder / kResultsName, line.substr(0, at) + value +
                                       line.substr(line.find(',', at)) + "\n");
    return std::string(ReadResults(folder.path()).status().message());
  };
  for (const char* key :
       {"repeat", "nodes", "ranks", "threads", "threads_used", "cores"}) {
    for (const char* value :
         {"-1", "4294967297", "-4294967295", "18446744073709551615", "1e+300",
          "1.5", "true", "\"1\"", "null"}) {
      EXPECT_THAT(with(key, value),
                  AllOf(HasSubstr("results.jsonl': line 2 is no sample"),
                        HasSubstr(absl::StrCat("\"", key, "\" is ", value))));
    }
    EXPECT_THAT(with(key, "1e999"), HasSubstr("line 2 is no sample"));
  }
  for (const char* value : {"-1.0", "0", "\"1\"", "true"}) {
    EXPECT_THAT(with("items_per_second", value),
                HasSubstr("\"items_per_second\" is "));
  }
  EXPECT_THAT(with("seconds", "-0.5"), HasSubstr("\"seconds\" is -0.5"));
  EXPECT_THAT(with("exit_code", "1e10"), HasSubstr("\"exit_code\" is "));
  EXPECT_EQ(with("exit_code", "-1"), "");
  EXPECT_EQ(with("seconds", "0"), "");
}

TEST(ResultsFileTest, AHeaderOfOddTypesIsAnError) {
  for (const char* header :
       {R"({"program": 5})", R"({"program": "scaling_sweep", "format": "1"})",
        R"({"program": "scaling_sweep", "format": 1, "spec": 5})",
        R"({"program": "scaling_sweep", "format": 4294967297, "spec": ""})"}) {
    const SweepFolder folder;
    WriteTo(folder / kResultsName, absl::StrCat(header, "\n"));
    EXPECT_THAT(std::string(ReadResults(folder.path()).status().message()),
                HasSubstr("results.jsonl': line 1 "))
        << header;
  }
}

TEST(ResultsFileTest, TheSpecOfResultsIsCheckedAsAnyOther) {
  const SweepFolder folder;
  Spec spec = SpecFor();
  spec.set_ranks(1, 2147483647);
  spec.add_threads(2);
  ASSERT_TRUE(ResultsFile::Open(folder.path(), spec).ok());
  EXPECT_THAT(std::string(ReadResults(folder.path()).status().message()),
              HasSubstr("line 1 has a SPEC that cannot be: ranks: 2147483647"));
}

TEST(SamplesOfTest, TheLastOfARepeatCounts) {
  Sample failed = SampleOf("a", 0);
  failed.items_per_second.reset();
  EXPECT_THAT(
      SamplesOf({SampleOf("a", 1), failed, SampleOf("b", 0), SampleOf("a", 0)},
                "a"),
      ElementsAre(SampleOf("a", 0), SampleOf("a", 1)));
}

class ProgramReportTest : public ::testing::Test {
 protected:
  absl::StatusOr<double> Speed(const std::string& json,
                               const std::string& items = "",
                               int warmup_intervals = 0) {
    const std::string file = folder_ / "r.json";
    std::ofstream(file) << json;
    const absl::StatusOr<ProgramReport> report =
        ReadProgramReport(file, items, warmup_intervals);
    if (!report.ok()) return report.status();
    return report->items_per_second;
  }
  std::string Error(const std::string& json, const std::string& items = "",
                    int warmup_intervals = 0) {
    return std::string(Speed(json, items, warmup_intervals).status().message());
  }

  SweepFolder folder_;
};

TEST_F(ProgramReportTest, IsTheMedianOfTheIntervalsThatCount) {
  const std::string json =
      R"({"images_per_second": {"median": 9, "intervals": [1, 50, 30, 40]}})";
  EXPECT_EQ(Speed(json).value(), 35);
  EXPECT_EQ(Speed(json, "images", 1).value(), 40);
  EXPECT_EQ(Speed(R"({"x_per_second": {"median": 9}})").value(), 9);
  EXPECT_EQ(Speed(R"({"x_per_second": 7})").value(), 7);
}

TEST_F(ProgramReportTest, ThreadsAreThoseThatItNames) {
  const auto threads = [&](const std::string& field) {
    const std::string file = folder_ / "r.json";
    std::ofstream(file) << R"({"x_per_second": 7)" << field << "}";
    return ReadProgramReport(file, "", 0).value().threads_per_rank;
  };
  EXPECT_EQ(threads(R"(, "threads_per_rank": 4)"), 4);
  EXPECT_EQ(threads(R"(, "threads_per_rank": "all")"), 0);
  EXPECT_EQ(threads(R"(, "threads_per_rank": -1)"), 0);
  EXPECT_EQ(threads(R"(, "threads_per_rank": 4294967297)"), 0);
  EXPECT_EQ(threads(R"(, "threads_per_rank": -4294967295)"), 0);
  EXPECT_EQ(threads(R"(, "threads_per_rank": 18446744073709551615)"), 0);
  EXPECT_EQ(threads(""), 0);
}

TEST_F(ProgramReportTest, TheMachineIsWhatItTellsInText) {
  const auto machine = [&](const std::string& field) {
    const std::string file = folder_ / "r.json";
    std::ofstream(file) << R"({"x_per_second": 7, "machine": )" << field << "}";
    return ReadProgramReport(file, "", 0).value().machine;
  };
  using Machine = std::map<std::string, std::string>;
  EXPECT_EQ(machine(R"({"processor": "Xeon", "cores": 2})"),
            (Machine{{"processor", "Xeon"}}));
  EXPECT_EQ(machine("[1]"), Machine());
  EXPECT_EQ(machine("7"), Machine());
}

TEST_F(ProgramReportTest, SaysWhatIsMissing) {
  EXPECT_THAT(Error("{}"), HasSubstr("it has none"));
  EXPECT_THAT(Error("not json"), HasSubstr("no JSON object"));
  const std::string two = R"({"a_per_second": 1, "b_per_second": 2})";
  EXPECT_THAT(Error(two), HasSubstr("it has a_per_second, b_per_second"));
  EXPECT_THAT(Error(two, "c"), HasSubstr("no field \"c_per_second\""));
  EXPECT_EQ(Speed(two, "b").value(), 2);
  EXPECT_THAT(Error(R"({"a_per_second": {"intervals": [1]}})", "", 1),
              HasSubstr("only 1 intervals"));
  EXPECT_THAT(Error(R"({"a_per_second": 0})"), HasSubstr("cannot be"));
  EXPECT_THAT(Error(R"({"a_per_second": {"intervals": "x"}})"),
              HasSubstr("odd \"a_per_second\""));
  EXPECT_THAT(Error(R"({"a_per_second": -1})"), HasSubstr("cannot be"));
  EXPECT_THAT(Error(R"({"a_per_second": 1e999})"), HasSubstr("r.json"));
  EXPECT_THAT(
      Error(R"({"a_per_second": {"intervals": [1e308, 1e308, -5]}})", "", 2),
      HasSubstr("cannot be"));
  EXPECT_EQ(
      Speed(R"({"a_per_second": {"intervals": [1.7e308, 1.7e308]}})").value(),
      1.7e308);
  EXPECT_TRUE(
      absl::IsNotFound(ReadProgramReport(folder_ / "none", "", 0).status()));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
