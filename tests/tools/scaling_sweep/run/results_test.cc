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
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/sweep_directory.h"
#include "tests/testing/golden.h"
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

TEST(SampleTest, SampleIsReadAsItWasWritten) {
  Sample sample = SampleOf("c", 3);
  EXPECT_EQ(ParseSample(ToJsonLine(sample)).value(), sample);
  sample.items_per_second.reset();
  sample.failure = "exit code 1";
  EXPECT_EQ(ParseSample(ToJsonLine(sample)).value(), sample);
  EXPECT_EQ(ToJsonLine(sample).find('\n'), std::string::npos);
  EXPECT_FALSE(ParseSample("{}").ok());
}

class ResultsFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<ResultsFile> Open(const Spec& spec = SpecFor()) {
    return ResultsFile::Open(directory_.path(), spec);
  }
  void Append(const Sample& sample) {
    ASSERT_TRUE(Open().value().Append(sample).ok());
  }
  // Appends to the file.
  void Write(const std::string& text) { WriteTo(file_, text); }
  std::vector<Sample> Samples() {
    return ReadResults(directory_.path()).value().samples;
  }
  // Returns why the results cannot be read, with DIR as the directory.
  std::string ReadError() {
    const absl::Status status = ReadResults(directory_.path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return absl::StrReplaceAll(status.message(), {{directory_.path(), "DIR"}});
  }

  const SweepDirectory directory_;
  const std::string file_ = directory_ / kResultsName;
};

TEST_F(ResultsFileTest, ContinuesWithExistingSamples) {
  {
    auto file = Open();
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Append(SampleOf("a", 0)).ok());
    EXPECT_THAT(Samples(), SizeIs(1));  // on the disk at once
  }
  Append(SampleOf("a", 1));
  EXPECT_THAT(Samples(), ElementsAre(SampleOf("a", 0), SampleOf("a", 1)));
  EXPECT_EQ(Identity(ReadResults(directory_.path())->spec),
            Identity(SpecFor()));
}

TEST_F(ResultsFileTest, FullDiskIsAnInternalError) {
  auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(file_);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status status = file->Append(SampleOf("a", 0));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(file->samples().empty());
}

TEST_F(ResultsFileTest, IncompleteLastLineIsIgnored) {
  Append(SampleOf("a", 0));
  Write(ToJsonLine(SampleOf("a", 1)).substr(0, 40));
  EXPECT_THAT(Samples(), SizeIs(1));
  Append(SampleOf("a", 2));
  EXPECT_THAT(Samples(), ElementsAre(SampleOf("a", 0), SampleOf("a", 2)));
}

TEST_F(ResultsFileTest, FileWithIncompleteFirstLineIsStartedAgain) {
  Write("{\"program\": \"scal");
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(ReadResults(directory_.path()).ok());
}

TEST_F(ResultsFileTest, AnotherSpecIsRefusedIfThereAreSamples) {
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(Open(SpecFor("threads: 2")).ok());
  EXPECT_EQ(ReadResults(directory_.path())->spec.threads(0), 2);
  ASSERT_TRUE(Open().ok());
  Append(SampleOf("a", 0));
  const std::string before = TextOf(file_);
  EXPECT_EQ(Open(SpecFor("threads: 2")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(TextOf(file_), before);
}

TEST_F(ResultsFileTest, MoreRepeatsAndOtherWorldsContinue) {
  Append(SampleOf("a", 0));
  Spec more = SpecFor();
  more.set_repeats(7);
  EXPECT_TRUE(Open(more).ok());
  more.add_ranks(64);
  for (int time = 0; time < 2; ++time) {  // the spec is written only once
    ASSERT_TRUE(Open(more).ok());
    const std::string text = TextOf(file_);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  }
  EXPECT_EQ(ReadResults(directory_.path())->spec.ranks().rbegin()[0], 64);
  EXPECT_THAT(Samples(), ElementsAre(SampleOf("a", 0)));
}

TEST_F(ResultsFileTest, OnlyOneProcessWrites) {
  {
    auto first = Open();
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(Open().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(ReadResults(directory_.path()).ok());
    EXPECT_TRUE(first->Append(SampleOf("a", 0)).ok());
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(ResultsFileTest, ErrorsNameFileAndLine) {
  EXPECT_TRUE(absl::IsNotFound(ReadResults(directory_ / "none").status()));
  ASSERT_TRUE(Open().ok());
  Write("nonsense\n");
  EXPECT_THAT(ReadError(),
              HasSubstr("'DIR/results.jsonl': line 2 is not a sample"));
}

TEST_F(ResultsFileTest, ImpossibleNumbersAreReportedWithKeyAndFile) {
  ASSERT_TRUE(Open().ok());
  const std::string begin = TextOf(file_);
  const std::string line = ToJsonLine(SampleOf("a", 0));
  const auto with = [&](const std::string& key, const std::string& value) {
    std::filesystem::remove(file_);
    const size_t at = line.find("\"" + key + "\":") + key.size() + 3;
    Write(begin + line.substr(0, at) + value + line.substr(line.find(',', at)) +
          "\n");
  };
  const auto refuse = [&](const std::string& key,
                          const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      with(key, value);
      EXPECT_THAT(ReadError(),
                  AllOf(HasSubstr(absl::StrCat("line 2 is not a sample: \"",
                                               key, "\" ")),
                        HasSubstr(value)));
    }
  };
  for (const char* key :
       {"repeat", "nodes", "ranks", "threads", "threads_used", "cores"}) {
    refuse(key, {"-1", "4294967297", "-4294967295", "18446744073709551615",
                 "1e+300", "1.5", "true", "\"1\"", "null"});
    with(key, "1e999");  // the JSON parser refuses this
    EXPECT_THAT(ReadError(), HasSubstr("line 2 is not a sample"));
  }
  refuse("items_per_second", {"-1.0", "0", "\"1\"", "true"});
  refuse("seconds", {"-0.5"});
  refuse("exit_code", {"10000000000.0"});
  with("exit_code", "-1");
  EXPECT_THAT(Samples(), SizeIs(1));
  with("seconds", "0");
  EXPECT_THAT(Samples(), SizeIs(1));
}

TEST_F(ResultsFileTest, InvalidHeaderIsAnError) {
  for (const char* header :
       {R"({"program": 5})", R"({"program": "scaling_sweep", "format": "1"})",
        R"({"program": "scaling_sweep", "format": 1, "spec": 5})",
        R"({"program": "scaling_sweep", "format": 4294967297, "spec": ""})"}) {
    std::filesystem::remove(file_);
    Write(absl::StrCat(header, "\n"));
    EXPECT_THAT(ReadError(), HasSubstr("results.jsonl': line 1 ")) << header;
  }
  // The spec in the header is checked like any other.
  std::filesystem::remove(file_);
  Spec spec = SpecFor();
  spec.set_ranks(1, 2147483647);
  ASSERT_TRUE(Open(spec).ok());
  testing::ExpectGolden(ReadError());
}

TEST(SamplesOfTest, LastSampleOfARepeatCounts) {
  Sample failed = SampleOf("a", 0);
  failed.items_per_second.reset();
  EXPECT_THAT(
      SamplesOf({SampleOf("a", 1), failed, SampleOf("b", 0), SampleOf("a", 0)},
                "a"),
      ElementsAre(SampleOf("a", 0), SampleOf("a", 1)));
}

class ProgramReportTest : public ::testing::Test {
 protected:
  absl::StatusOr<ProgramReport> Report(const std::string& json,
                                       const std::string& items = "",
                                       int warmup_intervals = 0) {
    const std::string file = directory_ / "r.json";
    std::ofstream(file) << json;
    return ReadProgramReport(file, items, warmup_intervals);
  }
  double Speed(const std::string& json, const std::string& items = "",
               int warmup_intervals = 0) {
    return Report(json, items, warmup_intervals).value().items_per_second;
  }

  SweepDirectory directory_;
};

TEST_F(ProgramReportTest, SpeedIsTheMedianWithoutWarmUp) {
  const std::string json =
      R"({"images_per_second": {"median": 9, "intervals": [1, 50, 30, 40]}})";
  EXPECT_EQ(Speed(json), 35);
  EXPECT_EQ(Speed(json, "images", 1), 40);
  EXPECT_EQ(Speed(R"({"x_per_second": {"median": 9}})"), 9);
  EXPECT_EQ(Speed(R"({"x_per_second": 7})"), 7);
  EXPECT_EQ(Speed(R"({"a_per_second": 1, "b_per_second": 2})", "b"), 2);
  EXPECT_EQ(Speed(R"({"a_per_second": {"intervals": [1.7e308, 1.7e308]}})"),
            1.7e308);
}

TEST_F(ProgramReportTest, ThreadsAndMachineAreRead) {
  const auto with = [&](const std::string& field) {
    return Report(R"({"x_per_second": 7)" + field + "}").value();
  };
  EXPECT_EQ(with(R"(, "threads_per_rank": 4)").threads_per_rank, 4);
  for (const char* odd :
       {"", R"(, "threads_per_rank": "all")", R"(, "threads_per_rank": -1)",
        R"(, "threads_per_rank": 4294967297)",
        R"(, "threads_per_rank": -4294967295)",
        R"(, "threads_per_rank": 18446744073709551615)"}) {
    EXPECT_EQ(with(odd).threads_per_rank, 0) << odd;
  }
  using Machine = std::map<std::string, std::string>;
  EXPECT_EQ(with(R"(, "machine": {"processor": "Xeon", "cores": 2})").machine,
            (Machine{{"processor", "Xeon"}}));
  EXPECT_EQ(with(R"(, "machine": [1])").machine, Machine());
  EXPECT_EQ(with(R"(, "machine": 7)").machine, Machine());
}

TEST_F(ProgramReportTest, MissingFieldsAreNamed) {
  struct Case {
    const char* json;
    const char* items = "";
    int warmup_intervals = 0;
  };
  const char* const two = R"({"a_per_second": 1, "b_per_second": 2})";
  std::string texts;
  for (const Case& one : std::vector<Case>{
           {"{}"},
           {"not json"},
           {two},
           {two, "c"},
           {R"({"a_per_second": {"intervals": [1]}})", "", 1},
           {R"({"a_per_second": 0})"},
           {R"({"a_per_second": -1})"},
           {R"({"a_per_second": 1e999})"},
           {R"({"a_per_second": {"intervals": [1e308, 1e308, -5]}})", "", 2}}) {
    const absl::Status status =
        Report(one.json, one.items, one.warmup_intervals).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.json;
    absl::StrAppend(
        &texts, one.json, "\n  ",
        absl::StrReplaceAll(status.message(), {{directory_.path(), "DIR"}}),
        "\n");
  }
  testing::ExpectGolden(texts);
  // The rest of the message comes from the JSON library.
  EXPECT_THAT(
      std::string(
          Report(R"({"a_per_second": {"intervals": "x"}})").status().message()),
      HasSubstr("invalid \"a_per_second\""));
  EXPECT_TRUE(
      absl::IsNotFound(ReadProgramReport(directory_ / "none", "", 0).status()));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
