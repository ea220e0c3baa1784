#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_recorder.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

const base::SteadyClock kViewerClock;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using timeline::TemporaryDirectory;
using timeline::TraceRecorder;

class TimelineViewerTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    return RunViewer(arguments, out_, err_);
  }

  // The tables that a command line prints.
  nlohmann::json Tables(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    EXPECT_EQ(Run(arguments), 0) << err_.str();
    return nlohmann::json::parse(out_.str());
  }

  void RecordRank(int rank, int64_t unit_ns) {
    TraceRecorder::Options options;
    options.path = path_;
    options.rank = rank;
    options.size = 2;
    options.host = absl::StrCat("node", rank);
    auto recorder = TraceRecorder::Open(options, kViewerClock);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    const auto record = [&](const char* name, int track, int64_t start,
                            int64_t end) {
      (*recorder)->Record({.name = name,
                           .track = track,
                           .start_ns = start * unit_ns,
                           .duration_ns = (end - start) * unit_ns,
                           .args = {}});
    };
    record("NEGOTIATE_ALLREDUCE", timeline::kFirstTensorTrack, 0, 4);
    record("MEMCPY_IN_FUSION_BUFFER", timeline::kBucketTrack, 4, 5);
    record("MPI_ALLREDUCE", timeline::kBucketTrack, 5, 8);
    record("CHUNK", timeline::kChunkTrack, 5, 6);
    record("MEMCPY_OUT_FUSION_BUFFER", timeline::kBucketTrack, 8, 9);
    record("ALLREDUCE", timeline::kBucketTrack, 4, 10);
    ASSERT_TRUE((*recorder)->Close().ok());
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
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

                          Covered  Wall Duration  Self time   Average Wall
Name                         (ms)           (ms)       (ms)  Duration (ms)  Occurrences
---------------------------------------------------------------------------------------
ALLREDUCE                  16.000         18.000      3.000          9.000            2
MPI_ALLREDUCE               9.000          9.000      9.000          4.500            2
NEGOTIATE_ALLREDUCE         8.000         12.000     12.000          6.000            2
MEMCPY_IN_FUSION_BUFFER     3.000          3.000      3.000          1.500            2
MEMCPY_OUT_FUSION_BUFFER    3.000          3.000      3.000          1.500            2
---------------------------------------------------------------------------------------
Totals                     20.000         45.000     30.000          4.500           10
)"));
}

TEST_F(TimelineViewerTest, PrintsATableForEachRank) {
  RecordRank(0, 1'000'000);
  RecordRank(1, 2'000'000);
  EXPECT_EQ(Run({"--by-rank", "--sort", "name", path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat("Trace:     ", path_,
                                                 " (2 per-rank files, not "
                                                 "merged)")));
  const size_t rank_0 = out_.str().find("\nRank 0 (node0)\n");
  const size_t rank_1 = out_.str().find("\nRank 1 (node1)\n");
  ASSERT_NE(rank_0, std::string::npos) << out_.str();
  ASSERT_NE(rank_1, std::string::npos) << out_.str();
  EXPECT_LT(rank_0, rank_1);
  EXPECT_EQ(out_.str().substr(rank_1), R"(
Rank 1 (node1)
                          Covered  Wall Duration  Self time   Average Wall
Name                         (ms)           (ms)       (ms)  Duration (ms)  Occurrences
---------------------------------------------------------------------------------------
ALLREDUCE                  12.000         12.000      2.000         12.000            1
MEMCPY_IN_FUSION_BUFFER     2.000          2.000      2.000          2.000            1
MEMCPY_OUT_FUSION_BUFFER    2.000          2.000      2.000          2.000            1
MPI_ALLREDUCE               6.000          6.000      6.000          6.000            1
NEGOTIATE_ALLREDUCE         8.000          8.000      8.000          8.000            1
---------------------------------------------------------------------------------------
Totals                     20.000         30.000     20.000          6.000            5
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
  EXPECT_EQ(order("covered"), "bac");
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
  EXPECT_THAT(out_.str(), HasSubstr("\nALLREDUCE         2.500"));
}

TEST_F(TimelineViewerTest, NamesDoNotDisturbTheTerminal) {
  timeline::WriteFile(path_,
                      R"([{"ph":"X","name":"a\u001b[31m\n","ts":0,"dur":1}])");
  EXPECT_EQ(Run({path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\na?[31m? "));
}

TEST_F(TimelineViewerTest, CommandMayFollowItsTrace) {
  RecordRank(0, 1'000'000);
  ASSERT_EQ(Run({"overlap", path_}), 0);
  const std::string report = out_.str();
  EXPECT_EQ(Run({path_, "overlap"}), 0);
  EXPECT_EQ(out_.str(), report);
  EXPECT_EQ(Run({path_, "overlapping"}), 2);
}

TEST_F(TimelineViewerTest, ProfileHasItsRankAndItsParts) {
  constexpr char kEvents[] = R"("traceEvents": [
    {"ph":"X","name":"ProfilerStep#1","pid":4242,"tid":1,"ts":0,"dur":1000},
    {"ph":"X","name":"aten::conv2d","pid":4242,"tid":1,"ts":100,"dur":500},
    {"ph":"X","name":"gloo:all_reduce","pid":4242,"tid":2,"ts":500,"dur":400}]})";
  timeline::WriteFile(
      path_, absl::StrCat(R"({"schemaVersion": 1, "distributedInfo": )",
                          R"({"backend": "gloo", "rank": 3, "world_size": 8},)",
                          kEvents));
  const nlohmann::json parts = Tables({path_})["parts"];
  EXPECT_EQ(parts[0], nlohmann::json::parse(R"({"Part": "computing",
      "ms": 0.7, "%": 70.0, "rank 3 %": 70.0})"));
  EXPECT_EQ(parts[2], nlohmann::json::parse(R"({"Part": "collectives alone",
      "ms": 0.3, "%": 30.0, "rank 3 %": 30.0})"));
  EXPECT_EQ(Tables({"steps", path_})["steps"][0]["rank"], 3);
  // Nothing counts as hidden in a profile.
  EXPECT_EQ(Tables({"overlap", path_})["overlap"][0],
            nlohmann::json::parse(R"({"rank": 3, "buckets ms/step": 0.4})"));
  EXPECT_EQ(Run({path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\nRank:      3 of 8 ("));
  timeline::WriteFile(path_, absl::StrCat("{", kEvents));
  EXPECT_TRUE(Tables({path_})["parts"][0].contains("process 4242 %"));
}

TEST_F(TimelineViewerTest, OverviewReportsALongStart) {
  const auto first_screen = [this](int64_t first_us) {
    std::string events = "[";
    for (int64_t step = 1; step <= 20; ++step) {
      const int64_t start_us = step == 1 ? 0 : first_us + (step - 2) * 1'000;
      absl::StrAppend(&events, step == 1 ? "" : ",\n",
                      R"({"ph":"X","name":"ProfilerStep#)", step,
                      R"(","pid":1,"tid":1,"ts":)", start_us, R"(,"dur":)",
                      step == 1 ? first_us : 1'000, "}");
    }
    timeline::WriteFile(path_, events + "]");
    EXPECT_EQ(Run({path_}), 0);
    return out_.str();
  };
  EXPECT_THAT(first_screen(4'000),
              HasSubstr("\nStart-up:  the first step ended after 0.004 s "
                        "(13 % of the run)\n"));
  EXPECT_THAT(first_screen(1'500), Not(HasSubstr("Start-up:")));
  // An even longer start is a finding.
  EXPECT_THAT(first_screen(20'000),
              AllOf(HasSubstr("The start takes"), Not(HasSubstr("Start-up:"))));
}

TEST_F(TimelineViewerTest, RemedyIsWrappedInTextAndOneLineInJson) {
  std::string events;
  for (int64_t step = 1; step <= 3; ++step) {
    for (const std::string& name : {absl::StrCat("ProfilerStep#", step),
                                    std::string("enumerate(DataLoader)")}) {
      absl::StrAppend(&events, events.empty() ? "[" : ",",
                      R"({"ph":"X","pid":1,"tid":1,"name":")", name,
                      R"(","ts":)", step * 1'000, R"(,"dur":)",
                      name[0] == 'P' ? 1'000 : 500, "}");
    }
  }
  timeline::WriteFile(path_, events + "]");
  const auto remedy = [this](const std::string& begin, const char* end) {
    const size_t at = out_.str().find(begin);
    EXPECT_NE(at, std::string::npos) << out_.str();
    return out_.str().substr(at, out_.str().find(end, at) - at);
  };
  EXPECT_EQ(Run({"why", path_}), 0);
  EXPECT_EQ(remedy("   Remedy: ", "\n\n"),
            "   Remedy: load ahead with more threads or processes (--workers, "
            "num_workers); keep the data on a fast disk\n"
            "           or in memory; decode less");
  EXPECT_EQ(Run({path_}), 0);
  EXPECT_EQ(remedy("Remedy: ", "\nEvidence"),
            "Remedy:    load ahead with more threads or processes (--workers, "
            "num_workers); keep the data on a fast disk\n"
            "           or in memory; decode less");
  EXPECT_EQ(Run({"why", "--json", path_}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("on a fast disk or in memory"));
}

TEST_F(TimelineViewerTest, StragglersReportsSumsAndMeans) {
  std::string events = "[";
  for (int rank = 0; rank < 3; ++rank) {
    const int64_t submitted_us = rank == 2 ? 900 : 600;
    absl::StrAppend(
        &events, rank == 0 ? "" : ",",
        absl::Substitute(
            R"({"ph":"M","name":"hvdlite_trace","pid":$0,"tid":1,
                "args":{"rank":$0,"size":3,"host":"a","clock_offset_ns":0}},
               {"ph":"X","name":"TRAINING_STEP","pid":$0,"tid":4,"ts":0,
                "dur":1000,"args":{"step":1}},
               {"ph":"X","name":"WAIT_FOR_GRADIENTS","pid":$0,"tid":3,
                "ts":$1,"dur":$2},
               {"ph":"X","name":"NEGOTIATE_ALLREDUCE","pid":$0,"tid":10,
                "ts":$1,"dur":$3},
               {"ph":"X","name":"ALLREDUCE","pid":$0,"tid":10,"ts":900,
                "dur":100,"args":{"bucket":1}},
               {"ph":"X","name":"ALLREDUCE_BUCKET","pid":$0,"tid":1,"ts":900,
                "dur":100,"args":{"bucket":1}})",
            rank, submitted_us, 1'000 - submitted_us, 900 - submitted_us));
  }
  timeline::WriteFile(path_, events + "]");
  const nlohmann::json ranks = Tables({"stragglers", path_})["stragglers"];
  const auto& last = ranks[2];
  EXPECT_EQ(last["rank"], 2);
  EXPECT_EQ(last["last in % of steps"], 100.0);
  // Two ranks waited 0.3 ms each.
  EXPECT_EQ(last["others waited, sum of ranks ms/step"], 0.6);
  EXPECT_EQ(last["computed ms/step"], 0.9);
}

TEST_F(TimelineViewerTest, HelpAndVersionGoToStandardOutput) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Usage: timeline_viewer"));
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(out_.str(), MatchesRegex("timeline_viewer \\(hvdlite\\) .*\n"));
  EXPECT_THAT(err_.str(), IsEmpty());
}

struct WrongCase {
  std::vector<std::string> arguments;
  int exit_status;
  const char* words;
};

TEST_F(TimelineViewerTest, ErrorsNameTheirCause) {
  RecordRank(0, 1'000'000);
  const std::string no_json = directory_.File("no.json");
  timeline::WriteFile(no_json, "no JSON");
  const std::string none = directory_.File("none.json");
  for (const WrongCase& wrong : std::vector<WrongCase>{
           {{}, 2, "TRACE is required"},
           {{"--fast", path_}, 2, "unknown flag --fast"},
           {{"--sort", "size", path_},
            2,
            "--sort: size not in {covered,self,wall,name,count}"},
           {{path_, "--sort"}, 2, "--sort"},
           {{"a.json", "b.json"},
            2,
            "neither 'a.json' nor 'b.json' is a command: expected TRACE, or a "
            "command and its TRACE"},
           {{"convert", path_}, 2, "is a command"},
           {{"tensor", path_}, 2, "NAME is required"},
           {{"tensor", path_, "x", "y"}, 2, "y"},
           {{"tensor", path_, "no.such"}, 1, "has no tensor \"no.such\""},
           {{none}, 1, "there is no file "},
           {{no_json}, 1, "no.json is not a trace"}}) {
    EXPECT_EQ(Run(wrong.arguments), wrong.exit_status) << wrong.words;
    EXPECT_THAT(err_.str(), HasSubstr(wrong.words));
    EXPECT_THAT(out_.str(), IsEmpty()) << wrong.words;
  }
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
