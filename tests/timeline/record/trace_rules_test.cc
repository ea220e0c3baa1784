#include "tests/timeline/trace_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const base::SteadyClock kRulesClock;

class TraceRulesTest : public ::testing::Test {
 protected:
  // "kind count@line" for each kind.
  static std::vector<std::string> KindsIn(const std::string& path) {
    const auto violations = FindViolations(path);
    EXPECT_TRUE(violations.ok()) << violations.status();
    std::vector<std::string> kinds;
    for (const Violation& violation : *violations) {
      kinds.push_back(absl::StrCat(violation.kind, " ", violation.count, "@",
                                   violation.first_line));
    }
    return kinds;
  }

  std::vector<std::string> Violations(const std::string& text) {
    WriteFile(path_, text);
    return KindsIn(path_);
  }

  // Of events, a line each, from line 2 on.
  std::vector<std::string> ViolationsOf(
      const std::vector<std::string>& events) {
    std::string text = "[";
    for (const std::string& event : events) {
      absl::StrAppend(&text, text.size() > 1 ? ",\n{" : "\n{", event, "}");
    }
    return Violations(text + "\n]\n");
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.File("trace.json");
};

void RecordRank(const std::string& path, int rank) {
  TraceRecorder::Options options;
  options.path = path;
  options.rank = rank;
  options.size = 2;
  options.host = "node";
  options.clock_offset_ns = rank * 1000;
  auto recorder = TraceRecorder::Open(options, kRulesClock);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  for (int64_t batch = 1; batch <= 3; ++batch) {
    const int64_t start_ns = batch * 1'000'000;
    (*recorder)->Record({.name = "ALLREDUCE",
                         .lane = kFirstTensorLane,
                         .start_ns = start_ns,
                         .duration_ns = 5'001,
                         .args = {{"tensor", "a \"b\" \xc3\xbc \xff"}},
                         .flow = TraceEvent::Flow::kOut,
                         .flow_id = batch});
    (*recorder)->Record({.name = "ALLREDUCE_BATCH",
                         .start_ns = start_ns,
                         .duration_ns = 5'001,
                         .args = {{"batch", batch}},
                         .flow = TraceEvent::Flow::kIn,
                         .flow_id = batch});
    (*recorder)->Record({.name = "MPI_ALLREDUCE",
                         .start_ns = start_ns + 1,
                         .duration_ns = 5'000});
    (*recorder)->Record({.name = "MEMORY",
                         .start_ns = start_ns,
                         .args = {{"resident_bytes", batch}, {"share", 0.5}},
                         .kind = TraceEvent::Kind::kCounter});
  }
  (*recorder)->StepOver(kRulesClock.NowNanos(), {});
  ASSERT_TRUE((*recorder)->Close().ok());
}

TEST_F(TraceRulesTest, WhatHvdliteRecordsKeepsAllRules) {
  RecordRank(path_, 0);
  RecordRank(path_, 1);
  EXPECT_THAT(KindsIn(TracePartPath(path_, 0)), IsEmpty());
  EXPECT_THAT(KindsIn(TracePartPath(path_, 1)), IsEmpty());
  ASSERT_TRUE(MergeTraceParts(path_, 2).ok());
  EXPECT_THAT(KindsIn(path_), IsEmpty());
}

TEST_F(TraceRulesTest, EachRuleIsFoundBroken) {
  const std::string event = R"("pid":1,"tid":1)";
  EXPECT_THAT(ViolationsOf({R"("name":"a","ts":1,)" + event,
                            R"("ph":"?","name":"a","ts":1,)" + event}),
              ElementsAre("phase 2@2"));
  EXPECT_THAT(ViolationsOf({R"("ph":"i","ts":1,)" + event,
                            R"("ph":"i","name":5,"ts":1,)" + event}),
              ElementsAre("name 2@2"));
  EXPECT_THAT(ViolationsOf({R"("ph":"i","name":"a","ts":1)",
                            R"("ph":"i","name":"a","ts":1,"pid":"x","tid":1)"}),
              ElementsAre("pid 2@2", "tid 1@2"));
  EXPECT_THAT(ViolationsOf({R"("ph":"i","name":"a",)" + event,
                            R"("ph":"i","name":"a","ts":"1",)" + event,
                            R"("ph":"i","name":"a","ts":-0.001,)" + event}),
              ElementsAre("time 2@2", "negative-time 1@4"));
  EXPECT_THAT(ViolationsOf({R"("ph":"X","name":"a","ts":1,)" + event,
                            R"("ph":"X","name":"a","ts":1,"dur":-1,)" + event,
                            R"("ph":"X","name":"a","ts":1,"dur":"",)" + event}),
              ElementsAre("duration 3@2"));
  EXPECT_THAT(
      ViolationsOf({R"("ph":"i","name":"a","ts":1,"args":[],)" + event}),
      ElementsAre("args 1@2"));
  EXPECT_THAT(
      ViolationsOf({R"("ph":"C","name":"a","ts":1,)" + event,
                    R"("ph":"C","name":"a","ts":1,"args":{},)" + event,
                    R"("ph":"C","name":"a","ts":1,"args":{"a":"1"},)" + event,
                    R"("ph":"C","name":"a","ts":1,"args":{"a":1},)" + event}),
      ElementsAre("counter 3@2"));
  EXPECT_THAT(
      ViolationsOf(
          {R"("ph":"M","name":"thread_name","args":{"name":5},)" + event,
           R"("ph":"M","name":"thread_sort_index","args":{},)" + event,
           R"("ph":"M","name":"process_labels",)" + event}),
      ElementsAre("metadata 3@2"));
}

TEST_F(TraceRulesTest, BeginsAndEndsMustPair) {
  const std::string event = R"("pid":1,"tid":1)";
  EXPECT_THAT(ViolationsOf({R"("ph":"E","ts":1,)" + event,
                            R"("ph":"B","name":"a","ts":2,)" + event,
                            R"("ph":"B","name":"b","ts":3,)" + event,
                            R"("ph":"E","name":"a","ts":4,)" + event,
                            R"("ph":"E","ts":3.5,"pid":1,"tid":2)"}),
              ElementsAre("unfinished 1@3", "unbegun 2@2", "end-name 1@5"));
  EXPECT_THAT(ViolationsOf({R"("ph":"B","name":"a","ts":2,)" + event,
                            R"("ph":"E","ts":1,)" + event}),
              ElementsAre("order 1@3", "unfinished 1@2", "unbegun 1@3"));
}

TEST_F(TraceRulesTest, SlicesOfALaneMustNest) {
  const auto slice = [](const char* start, const char* duration, int tid) {
    return absl::StrCat(R"("ph":"X","name":"a","pid":1,"ts":)", start,
                        R"(,"dur":)", duration, R"(,"tid":)", tid);
  };
  EXPECT_THAT(ViolationsOf({slice("0", "10", 1), slice("0", "5", 1),
                            slice("5", "5", 1), slice("10", "0", 1),
                            slice("10", "1", 1), slice("9", "10", 2)}),
              IsEmpty());
  EXPECT_THAT(ViolationsOf({slice("0", "10", 1), slice("5", "5.001", 1)}),
              ElementsAre("nesting 1@3"));
}

TEST_F(TraceRulesTest, FlowsMustBeginAndEnd) {
  const std::string event = R"("name":"a","pid":1,"tid":1)";
  const std::string slice = R"("ph":"X","dur":1,)" + event;
  EXPECT_THAT(
      ViolationsOf({R"("ph":"s","ts":1,"id":1,)" + event,
                    R"("ph":"f","ts":2,"id":1,)" + event,
                    R"("ts":1,"bind_id":"0x1","flow_out":true,)" + slice,
                    R"("ts":2,"bind_id":"0x1","flow_in":true,)" + slice}),
      IsEmpty());
  EXPECT_THAT(ViolationsOf({R"("ph":"s","ts":1,"id":1,)" + event,
                            R"("ph":"f","ts":2,"id":"2",)" + event,
                            R"("ph":"s","ts":2,)" + event,
                            R"("ph":"s","ts":2,"id":3,)" + event,
                            R"("ph":"f","ts":1,"id":3,)" + event}),
              ElementsAre("flow 4@2"));
  EXPECT_THAT(
      ViolationsOf({R"("ts":1,"bind_id":"0x1","flow_out":true,)" + slice}),
      ElementsAre("flow 1@2"));
}

TEST_F(TraceRulesTest, LanesOfRanksMustHaveNames) {
  const std::string rank =
      R"("ph":"M","name":"hvdlite_trace","pid":1,"tid":1,"args":{})";
  const std::string slice =
      R"("ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":3)";
  EXPECT_THAT(ViolationsOf({rank, slice}), ElementsAre("unnamed-lane 1@3"));
  EXPECT_THAT(
      ViolationsOf(
          {rank,
           R"("ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"x"})",
           slice}),
      IsEmpty());
  EXPECT_THAT(ViolationsOf({slice}), IsEmpty());
}

TEST_F(TraceRulesTest, TheFileMustBeWholeAndUtf8) {
  const std::string event =
      R"({"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":3})";
  EXPECT_THAT(Violations("[" + event + ",\n"), IsEmpty());  // Chrome's rule
  EXPECT_THAT(Violations("[" + event + ",\n{\"ph"), ElementsAre("cut-off 1@2"));
  EXPECT_THAT(Violations("{\"traceEvents\":[" + event + "\n]"),
              ElementsAre("cut-off 1@2"));
  EXPECT_THAT(Violations("[\n{\"name\":\"\xff\"},\n" + event + "\n]"),
              ElementsAre("json 1@2"));
  EXPECT_THAT(Violations("[" + event + "\n" + event + "]"),
              ElementsAre("json 1@2"));
  for (const char* text : {"hello", "", "{\"a\":1}", "{\"traceEvents\":1}"}) {
    EXPECT_THAT(Violations(text), ElementsAre("json 1@1")) << text;
  }
}

}  // namespace
}  // namespace hvdlite::timeline
