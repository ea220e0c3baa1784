#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/input_error.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_recorder.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const base::SteadyClock kSliceClock;

class SliceTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    return RunViewer(arguments, out_, err_);
  }

  // Three steps of 10 ms. Each has an event of 4 ms on the bucket track that
  // begins 8 ms after the step.
  void RecordRank(int rank, int64_t offset_ns) {
    timeline::TraceRecorder::Options options;
    options.path = path_;
    options.rank = rank;
    options.size = 2;
    options.host = "node";
    options.clock_offset_ns = offset_ns;
    options.facts = {{"clock_uncertainty_ns", int64_t{rank * 500}}};
    auto recorder = timeline::TraceRecorder::Open(options, kSliceClock);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    for (int64_t step = 1; step <= 3; ++step) {
      const int64_t start_ns = step * 10'000'000 - offset_ns;
      (*recorder)->Record({.name = "TRAINING_STEP",
                           .track = timeline::kStepTrack,
                           .start_ns = start_ns,
                           .duration_ns = 10'000'000,
                           .args = {{"step", step}}});
      (*recorder)->Record({.name = absl::StrCat("EVENT", step),
                           .start_ns = start_ns + 8'000'000,
                           .duration_ns = 4'000'000});
    }
    ASSERT_TRUE((*recorder)->Close().ok());
  }

  // The written slices as "name rank@start", in ms.
  std::vector<std::string> Written() {
    const auto trace = timeline::ReadTrace(part_);
    EXPECT_TRUE(trace.ok()) << trace.status();
    std::vector<std::string> slices;
    if (!trace.ok()) return slices;
    EXPECT_THAT(trace->warnings, IsEmpty());
    for (const timeline::TraceSlice& slice : trace->slices) {
      slices.push_back(absl::StrCat(trace->NameOf(slice), " ", slice.pid, "@",
                                    slice.start_ns / 1'000'000));
    }
    return slices;
  }

  const timeline::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
  const std::string part_ = directory_.File("part.json");
  const std::string other_ = directory_.File("other.json");
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(SliceTest, TakesSteps) {
  RecordRank(0, 0);
  RecordRank(1, -5'000'000'000);
  ASSERT_EQ(Run({"slice", path_, "--steps", "2", "-o", part_}), 0)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("part.json: 6 events"));
  EXPECT_THAT(Written(),
              ElementsAre("EVENT1 0@18", "TRAINING_STEP 0@20", "EVENT2 0@28",
                          "EVENT1 1@18", "TRAINING_STEP 1@20", "EVENT2 1@28"));
  ASSERT_TRUE(timeline::MergeTraceParts(path_, 2).ok());
  ASSERT_EQ(Run({"slice", path_, "--steps", "3-", "--ranks", "1", "-o", part_,
                 "--overwrite"}),
            0);
  const auto trace = timeline::ReadTrace(part_);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->slices.size(), 3u);
  EXPECT_EQ(trace->processes.size(), 1u);
  EXPECT_EQ(Run({"slice", path_, "--steps", "7-9", "-o", other_}), kUnreadable);
  EXPECT_THAT(err_.str(), HasSubstr("has only steps 1 to 3"));
}

TEST_F(SliceTest, TakesATime) {
  RecordRank(0, 0);
  RecordRank(1, -5'000'000'000);
  // The first event is at 10 ms of the file's clock.
  ASSERT_EQ(Run({"slice", path_, "--from", "12", "--to", "20", "-o", part_}), 0)
      << err_.str();
  EXPECT_THAT(Written(), ElementsAre("TRAINING_STEP 0@20", "EVENT2 0@28",
                                     "TRAINING_STEP 1@20", "EVENT2 1@28"));
  ASSERT_EQ(Run({"slice", path_, "--from=30", "-o", part_, "--overwrite"}), 0);
  EXPECT_THAT(Written(), ElementsAre("EVENT3 0@38", "EVENT3 1@38"));
}

TEST_F(SliceTest, TimesAreThoseOfTheStepsCommand) {
  RecordRank(0, 0);
  ASSERT_EQ(Run({"steps", path_, "--csv"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\n1,0,0.000,10.000,"));
  EXPECT_THAT(out_.str(), HasSubstr("\n3,0,20.000,10.000,"));
  ASSERT_EQ(Run({"slice", path_, "--from", "20", "-o", part_}), 0)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("3 events"));
}

TEST_F(SliceTest, EmptySelectionIsAnErrorThatListsWhatExists) {
  RecordRank(0, 0);
  RecordRank(1, -5'000'000'000);
  EXPECT_EQ(Run({"slice", path_, "--from", "100", "--to", "200", "-o", part_}),
            kUnreadable);
  EXPECT_THAT(err_.str(), HasSubstr("from 0.000 to 32.000 ms"));
  EXPECT_EQ(Run({"slice", path_, "--ranks", "1,2,7", "-o", part_}),
            kUnreadable);
  EXPECT_THAT(err_.str(), HasSubstr("has no events of ranks 2, 7; it has "
                                    "ranks 0, 1"));
  EXPECT_FALSE(std::filesystem::exists(part_));
}

TEST_F(SliceTest, OutputThatExistsOrIsTheInputIsRefused) {
  RecordRank(0, 0);
  RecordRank(1, 0);
  const std::string input = path_ + ".rank00001";
  const std::string bytes = timeline::ReadWholeFile(input);
  timeline::WriteFile(part_, "earlier");
  std::filesystem::create_symlink(input, other_);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"slice"},
        {"merge"},
        {"repair"},
        {"html"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {input, "-o", part_});
    EXPECT_EQ(Run(arguments), support::kInputErrorExitCode) << command.front();
    EXPECT_THAT(err_.str(), HasSubstr("--overwrite")) << command.front();
    EXPECT_EQ(timeline::ReadWholeFile(part_), "earlier");
    for (const std::string& same : {input, other_}) {
      arguments = command;
      arguments.insert(arguments.end(), {input, "--overwrite", "-o", same});
      EXPECT_EQ(Run(arguments), support::kInputErrorExitCode)
          << command.front();
      EXPECT_THAT(err_.str(), HasSubstr("this command reads"))
          << command.front();
      EXPECT_EQ(timeline::ReadWholeFile(input), bytes);
    }
  }
  // Each per-rank trace file is an input.
  EXPECT_EQ(Run({"merge", path_, "--overwrite", "-o", input}),
            support::kInputErrorExitCode);
  EXPECT_EQ(Run({"merge", path_, "-o", "/dev/null"}), 0) << err_.str();
}

TEST_F(SliceTest, BeginsAndEndsStayTogether) {
  timeline::WriteFile(path_, R"([
    {"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}},
    {"ph":"B","name":"long","ts":0,"pid":1,"tid":1},
    {"ph":"B","name":"before","ts":1000,"pid":1,"tid":1},
    {"ph":"E","ts":2000,"pid":1,"tid":1},
    {"ph":"B","name":"within","ts":3000,"pid":1,"tid":1},
    {"ph":"E","ts":4000,"pid":1,"tid":1},
    {"ph":"C","name":"c","ts":2500,"pid":1,"args":{"v":1}},
    {"ph":"C","name":"c","ts":3500,"pid":1,"args":{"v":2}},
    {"ph":"E","ts":9000,"pid":1,"tid":1}
  ])");
  ASSERT_EQ(Run({"slice", path_, "--from", "3", "--to", "4", "-o", part_}), 0);
  EXPECT_THAT(Written(), ElementsAre("long 1@0", "within 1@3"));
  EXPECT_EQ(timeline::ReadTrace(part_)->counters.size(), 1u);
  EXPECT_EQ(timeline::ReadTrace(part_)->processes.at(1).name, "p");
  EXPECT_EQ(Run({"slice", path_, "--steps", "1", "-o", other_}), kUnreadable);
  EXPECT_THAT(err_.str(), HasSubstr("has no training steps"));
}

TEST_F(SliceTest, WrongSelectionsAreUsageErrors) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--steps", "0-1"},
        {"--steps", "5-4"},
        {"--steps", "1-2-3"},
        {"--steps", "x"},
        {"--from", "x"},
        {"--to", "1e300"},
        {"--ranks", "0;1"},
        {"--steps", "1", "--from", "1"}}) {
    std::vector<std::string> arguments = {"slice", path_, "-o", part_};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(arguments), support::kInputErrorExitCode) << wrong.back();
  }
}

TEST_F(SliceTest, MergeReportsHowWellClocksAgree) {
  RecordRank(0, 0);
  RecordRank(1, -5'000'000'000);
  const std::string parts = path_ + ".rank0000";
  ASSERT_EQ(Run({"merge", parts + "1", parts + "0", "-o", part_}), 0)
      << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Times of two ranks agree to 0.500 us"));
  EXPECT_THAT(out_.str(), HasSubstr("-5000000.000"));
  EXPECT_EQ(Written().size(), 12u);
  EXPECT_EQ(Run({"merge", path_, "-o", part_, "--overwrite"}), 0);
  EXPECT_EQ(Written().size(), 12u);

  timeline::WriteFile(path_,
                      R"([{"ph":"X","name":"a","ts":1,"dur":1,"pid":7}])");
  EXPECT_EQ(Run({"merge", path_, parts + "0", "-o", other_}), kUnreadable);
  EXPECT_THAT(err_.str(), HasSubstr("has no clock offset"));
  EXPECT_THAT(err_.str(), HasSubstr("--force"));
  EXPECT_EQ(Run({"merge", path_, parts + "0", "--force", "-o", other_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("It is unknown how well"));
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
