#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/trace_recorder.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

const base::SteadyClock kClock;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using timeline::TemporaryFolder;
using timeline::TraceRecorder;

class TimelineViewerTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    return RunViewer(arguments, out_, err_);
  }

  void RecordRank(int rank, int64_t unit_ns) {
    TraceRecorder::Options options;
    options.path = path_;
    options.rank = rank;
    options.size = 2;
    options.host = absl::StrCat("node", rank);
    auto recorder = TraceRecorder::Open(options, kClock);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    const auto record = [&](const char* name, int lane, int64_t start,
                            int64_t end) {
      (*recorder)->Record({.name = name,
                           .lane = lane,
                           .start_ns = start * unit_ns,
                           .duration_ns = (end - start) * unit_ns,
                           .args = {}});
    };
    record("NEGOTIATE_ALLREDUCE", timeline::kFirstTensorLane, 0, 4);
    record("MEMCPY_IN_FUSION_BUFFER", timeline::kBatchLane, 4, 5);
    record("MPI_ALLREDUCE", timeline::kBatchLane, 5, 8);
    record("CHUNK", timeline::kChunkLane, 5, 6);
    record("MEMCPY_OUT_FUSION_BUFFER", timeline::kBatchLane, 8, 9);
    record("ALLREDUCE", timeline::kBatchLane, 4, 10);
    ASSERT_TRUE((*recorder)->Close().ok());
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("trace.json");
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(TimelineViewerTest, PrintsTheTableOfAMergedTrace) {
  RecordRank(0, 1'000'000);
  RecordRank(1, 2'000'000);
  ASSERT_TRUE(timeline::MergeTraceParts(path_, 2).ok());
  EXPECT_EQ(Run({path_}), 0);
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(out_.str(), absl::StrCat("Trace:     ", path_, R"(
Ranks:     2 of 2 on node0, node1
Time span: 20.000 ms
Events:    12, dropped while recording: 0

Name                      Wall Duration (ms)  Self time (ms)  Average Wall Duration (ms)  Occurrences
-----------------------------------------------------------------------------------------------------
NEGOTIATE_ALLREDUCE                   12.000          12.000                       6.000            2
MPI_ALLREDUCE                          9.000           9.000                       4.500            2
ALLREDUCE                             18.000           3.000                       9.000            2
MEMCPY_IN_FUSION_BUFFER                3.000           3.000                       1.500            2
MEMCPY_OUT_FUSION_BUFFER               3.000           3.000                       1.500            2
-----------------------------------------------------------------------------------------------------
Totals                                45.000          30.000                       4.500           10
)"));
}

TEST_F(TimelineViewerTest, PrintsATableForEachRank) {
  RecordRank(0, 1'000'000);
  RecordRank(1, 2'000'000);
  EXPECT_EQ(Run({"--by-rank", "--sort", "name", path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat("Trace:     ", path_,
                                                 " (2 parts, not merged)")));
  const size_t rank_0 = out_.str().find("\nRank 0 (node0)\nName ");
  const size_t rank_1 = out_.str().find("\nRank 1 (node1)\nName ");
  ASSERT_NE(rank_0, std::string::npos) << out_.str();
  ASSERT_NE(rank_1, std::string::npos) << out_.str();
  EXPECT_LT(rank_0, rank_1);
  EXPECT_EQ(out_.str().substr(rank_1), R"(
Rank 1 (node1)
Name                      Wall Duration (ms)  Self time (ms)  Average Wall Duration (ms)  Occurrences
-----------------------------------------------------------------------------------------------------
ALLREDUCE                             12.000           2.000                      12.000            1
MEMCPY_IN_FUSION_BUFFER                2.000           2.000                       2.000            1
MEMCPY_OUT_FUSION_BUFFER               2.000           2.000                       2.000            1
MPI_ALLREDUCE                          6.000           6.000                       6.000            1
NEGOTIATE_ALLREDUCE                    8.000           8.000                       8.000            1
-----------------------------------------------------------------------------------------------------
Totals                                30.000          20.000                       6.000            5
)");
}

TEST_F(TimelineViewerTest, SortsByEachColumn) {
  timeline::WriteFile(path_, R"([
    {"ph":"X","name":"b","ts":0,"dur":10},
    {"ph":"X","name":"a","ts":0,"dur":9},
    {"ph":"X","name":"c","ts":20,"dur":2},
    {"ph":"X","name":"c","ts":30,"dur":2}
  ])");
  const auto order = [this](const char* column) {
    EXPECT_EQ(Run({std::string("--sort=") + column, path_}), 0);
    std::string names;
    std::istringstream lines(out_.str());
    for (std::string line; std::getline(lines, line);) {
      if (line.size() > 1 && line[1] == ' ') names += line[0];
    }
    return names;
  };
  EXPECT_EQ(order("self"), "acb");
  EXPECT_EQ(order("wall"), "bac");
  EXPECT_EQ(order("name"), "abc");
  EXPECT_EQ(order("count"), "cab");
}

TEST_F(TimelineViewerTest, PrintsAHorovodTimelineWithItsWarnings) {
  timeline::WriteFile(path_, R"([
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "grad/conv1"}},
{"ph": "B", "name": "ALLREDUCE", "ts": 1000, "pid": 1},
{"ph": "E", "ts": 3500, "pid": 1},
{"ph": "B", "name": "ALLRED)");
  EXPECT_EQ(Run({"--by-rank", path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Processes: 1 ("));
  EXPECT_THAT(out_.str(), HasSubstr("Warning:   " + path_ + ": cut off"));
  EXPECT_THAT(out_.str(), HasSubstr("\nProcess 1: grad/conv1\n"));
  EXPECT_THAT(out_.str(), HasSubstr("\nALLREDUCE               2.500"));
}

TEST_F(TimelineViewerTest, NamesDoNotDisturbTheTerminal) {
  timeline::WriteFile(path_,
                      R"([{"ph":"X","name":"a\u001b[31m\n","ts":0,"dur":1}])");
  EXPECT_EQ(Run({path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\na?[31m? "));
}

TEST_F(TimelineViewerTest, HelpGoesToStandardOutput) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Usage: timeline_viewer"));
  EXPECT_THAT(err_.str(), IsEmpty());
}

TEST_F(TimelineViewerTest, WrongCommandLinesExitWith2) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("TRACE is required"));
  EXPECT_EQ(Run({"--fast", path_}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("not expected: --fast"));
  EXPECT_EQ(Run({"--sort", "size", path_}), 2);
  EXPECT_THAT(err_.str(),
              HasSubstr("--sort: size not in {self,wall,name,count}"));
  EXPECT_EQ(Run({path_, "--sort"}), 2);
  EXPECT_EQ(Run({"a.json", "b.json"}), 2);
  EXPECT_THAT(err_.str(),
              HasSubstr("TRACE: At Most 1 required but received 2"));
  EXPECT_THAT(out_.str(), IsEmpty());
}

TEST_F(TimelineViewerTest, UnreadableTracesExitWith1) {
  EXPECT_EQ(Run({path_}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("there is no " + path_));
  timeline::WriteFile(path_, "no JSON");
  EXPECT_EQ(Run({path_}), 1);
  EXPECT_THAT(err_.str(), HasSubstr(path_ + " is no trace"));
  EXPECT_THAT(out_.str(), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
