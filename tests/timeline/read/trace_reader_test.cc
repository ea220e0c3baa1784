#include "timeline/read/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "name pid/tid start+duration" in ns.
std::vector<std::string> Describe(const Trace& trace) {
  std::vector<std::string> lines;
  for (const TraceSlice& slice : trace.slices) {
    lines.push_back(absl::StrCat(trace.names[slice.name], " ", slice.pid, "/",
                                 slice.tid, " ", slice.start_ns, "+",
                                 slice.duration_ns));
  }
  return lines;
}

class TraceReaderTest : public ::testing::Test {
 protected:
  absl::StatusOr<Trace> Read(const std::string& text) {
    WriteFile(path_, text);
    return ReadTrace(path_);
  }
  Trace MustRead(const std::string& text) {
    absl::StatusOr<Trace> trace = Read(text);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() ? *std::move(trace) : Trace();
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
};

// A timeline of Horovod whose process was killed.
constexpr char kHorovodTimeline[] = R"([
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "grad/conv1"}},
{"name": "process_sort_index", "ph": "M", "pid": 1, "args": {"sort_index": 1}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1},
{"ph": "X", "name": "0", "ts": 101, "pid": 1, "dur": 0},
{"ph": "i", "name": "CYCLE_START", "ts": 102, "s": "g"},
{"ph": "E", "ts": 150, "pid": 1},
{"ph": "B", "name": "ALLREDUCE", "ts": 150, "pid": 1},
{"ph": "B", "name": "MPI_ALLREDUCE", "ts": 160, "pid": 1},
{"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "grad/fc"}},
{"ph": "B", "name": "ALLREDUCE", "ts": 165, "pid": 2},
{"ph": "E", "ts": 190, "pid": 1},
{"ph": "E", "ts": 200, "pid": 1, "args": {"dtype": "float32", "shape": "[3, 4]"}},
)";

TEST_F(TraceReaderTest, ReadsAHorovodTimelineThatWasNeverClosed) {
  const Trace trace = MustRead(kHorovodTimeline);
  EXPECT_THAT(Describe(trace),
              ElementsAre("NEGOTIATE_ALLREDUCE 1/0 100000+50000",
                          "0 1/0 101000+0", "ALLREDUCE 1/0 150000+50000",
                          "MPI_ALLREDUCE 1/0 160000+30000"));
  EXPECT_EQ(trace.processes.at(1).name, "grad/conv1");
  EXPECT_EQ(trace.processes.at(2).name, "grad/fc");
  EXPECT_FALSE(trace.processes.at(1).is_rank);
  EXPECT_THAT(trace.warnings,
              ElementsAre(path_ + ": 1 event left out: begin without an end"));
}

TEST_F(TraceReaderTest, ReadsBucketsUnderTheirFormerName) {
  const Trace trace = MustRead(
      R"([{"ph":"X","name":"ALLREDUCE_BATCH","ts":1,"dur":2,"pid":0,"tid":1,
           "args":{"batch":7}},
          {"ph":"X","name":"LOAD_BATCH","ts":1,"dur":2,"pid":0,"tid":3}])");
  EXPECT_THAT(Describe(trace), ElementsAre("ALLREDUCE_BUCKET 0/1 1000+2000",
                                           "LOAD_BATCH 0/3 1000+2000"));
  EXPECT_EQ(trace.DetailsOf(trace.slices[0]).bucket, 7);
}

TEST_F(TraceReaderTest, ReadsEveryKindOfEnd) {
  const std::string event = R"({"ph":"X","name":"a","ts":1.5,"dur":2,"pid":7})";
  for (const std::string& text :
       {"[" + event + "]", "[\n" + event + "\n]\n", "[" + event + ",]",
        "[\n" + event + ",\n]\n", "[" + event, "[\n" + event + ",\n",
        "[\n" + event + ",\n\n  ", "{\"traceEvents\":[" + event + "]}",
        "{\"traceEvents\":[\n" + event + ",\n],\n\"displayTimeUnit\":\"ms\"}",
        "{\"otherData\":{\"traceEvents\":[1]},\"traceEvents\":[" + event +
            "],\"stackFrames\":[{\"ph\":\"X\",\"ts\":1,\"name\":\"no\"}]}",
        "{\"traceEvents\":[" + event, "\xef\xbb\xbf[" + event + "]"}) {
    const Trace trace = MustRead(text);
    EXPECT_THAT(Describe(trace), ElementsAre("a 7/0 1500+2000")) << text;
    EXPECT_THAT(trace.warnings, IsEmpty()) << text;
  }
}

TEST_F(TraceReaderTest, ReadsPrettyPrintedEvents) {
  const Trace trace = MustRead(R"({
  "traceEvents": [
    {
      "args": {
        "name": "x", "deep": [{"ph": "B", "ts": 1}, {"pid": 5}]
      },
      "dur": 3,
      "name": "a",
      "ph": "X",
      "pid": "1",
      "tid": 2,
      "ts": 1
    }
  ]
})");
  EXPECT_THAT(Describe(trace), ElementsAre("a 1/2 1000+3000"));
  EXPECT_THAT(trace.warnings, IsEmpty());
}

TEST_F(TraceReaderTest, ReportsWhereAFileIsCutOff) {
  const Trace trace = MustRead(
      "[\n{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":7},\n{"
      "\"ph\"");
  EXPECT_THAT(Describe(trace), ElementsAre("a 7/0 1000+2000"));
  EXPECT_THAT(trace.warnings,
              ElementsAre(path_ + ": cut off within an event after 1 events"));
}

TEST_F(TraceReaderTest, ContinuesAfterADamagedLine) {
  const Trace trace = MustRead(
      "[\n"
      "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":7},\n"
      "{\"ph\":\"X\",\"name\":\"\xff\",\"ts\":2,\"dur\":1,\"pid\":7},\n"
      "{\"ph\":\"X\",\"name\":\"c\",\"ts\":3,\"d{\"ph\":\"X\",\"ts\":4},\n"
      "{\"ph\":\"X\",\"name\":\"d\",\"ts\":5,\"dur\":1,\"pid\":7}\n"
      "{\"ph\":\"X\",\"name\":\"no comma before\",\"ts\":6,\"pid\":7},\n"
      "]");
  EXPECT_THAT(Describe(trace), ElementsAre("a 7/0 1000+1000", "d 7/0 5000+1000",
                                           "no comma before 7/0 6000+0"));
  ASSERT_EQ(trace.warnings.size(), 1u);
  EXPECT_THAT(trace.warnings[0], HasSubstr("damaged at 3 places"));
}

TEST_F(TraceReaderTest, LeavesOutInvalidEvents) {
  const Trace trace = MustRead(R"([
    {"ph":"E","ts":1,"pid":1},
    {"name":"no phase","ts":1},
    {"ph":"X","name":"no time"},
    {"ph":"X","name":"negative","ts":1,"dur":-1},
    {"ph":"X","name":"far","ts":1e300,"dur":1},
    {"ph":"X","name":"far","ts":18446744073709551615,"dur":1}
  ])");
  EXPECT_THAT(Describe(trace), IsEmpty());
  EXPECT_THAT(
      trace.warnings,
      ElementsAre(
          HasSubstr("5 events left out: without phase, time or a valid"),
          HasSubstr("1 event left out: end without a begin")));
}

TEST_F(TraceReaderTest, PairsBeginsAndEndsByTimeInAnyOrder) {
  const Trace trace = MustRead(R"([
    {"ph":"E","ts":9,"pid":1,"tid":1},
    {"ph":"B","name":"inner","ts":4,"pid":1,"tid":1},
    {"ph":"E","ts":6,"pid":1,"tid":1},
    {"ph":"B","name":"outer","ts":2,"pid":1,"tid":1},
    {"ph":"B","name":"other track","ts":3,"pid":1,"tid":2},
    {"ph":"E","ts":5,"pid":1,"tid":2}
  ])");
  EXPECT_THAT(Describe(trace),
              ElementsAre("inner 1/1 4000+2000", "outer 1/1 2000+7000",
                          "other track 1/2 3000+2000"));
  EXPECT_THAT(trace.warnings, IsEmpty());
}

TEST_F(TraceReaderTest, FilesThatAreNotTracesAreErrors) {
  EXPECT_THAT(std::string(Read("").status().message()), HasSubstr("is empty"));
  EXPECT_THAT(std::string(Read(" \n").status().message()),
              HasSubstr("is empty"));
  for (const char* text : {"hello", "{\"a\": 1}", "[hello", "{]", "{\"ph\"}",
                           "[{\"a\":1}]", "]"}) {
    const absl::Status status = Read(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(path_ + " is not a trace"));
  }
}

TEST_F(TraceReaderTest, UnreadableFilesAreErrors) {
  const absl::Status missing = ReadTrace(directory_.File("none.json")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("none.json, and no per-rank trace file"));
  EXPECT_THAT(std::string(ReadTrace(directory_.File("")).status().message()),
              HasSubstr("is a directory"));
}

std::string Part(int rank, int size, int64_t offset_ns,
                 const std::string& events) {
  return absl::StrCat("[\n{\"name\":\"hvdlite_trace\",\"ph\":\"M\",\"pid\":",
                      rank, ",\"tid\":1,\"args\":{\"rank\":", rank,
                      ",\"size\":", size, ",\"host\":\"node", rank,
                      "\",\"clock_offset_ns\":", offset_ns, "}},\n", events);
}

TEST_F(TraceReaderTest, ReadsRankFilesWithAlignedClocks) {
  WriteFile(path_ + ".rank00000",
            Part(0, 2, 0,
                 "{\"ts\":1.000,\"dur\":1.000,\"ph\":\"X\",\"name\":\"a\","
                 "\"pid\":0,\"tid\":1},\n"));
  WriteFile(path_ + ".rank00001",
            Part(1, 2, -500,
                 "{\"ts\":2.000,\"dur\":1.000,\"ph\":\"X\",\"name\":\"a\","
                 "\"pid\":1,\"tid\":1},\n"
                 "{\"name\":\"hvdlite_dropped_events\",\"ph\":\"M\",\"pid\":1,"
                 "\"tid\":1,\"args\":{\"dropped_events\":3}}\n]\n"));
  const absl::StatusOr<Trace> trace = ReadTrace(path_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(Describe(*trace),
              ElementsAre("a 0/1 1000+1000", "a 1/1 1500+1000"));
  EXPECT_THAT(trace->files,
              ElementsAre(path_ + ".rank00000", path_ + ".rank00001"));
  EXPECT_TRUE(trace->processes.at(1).is_rank);
  EXPECT_EQ(trace->processes.at(1).host, "node1");
  EXPECT_EQ(trace->processes.at(1).world_size, 2);
  EXPECT_EQ(trace->processes.at(1).dropped_events, 3);
  EXPECT_THAT(trace->warnings,
              ElementsAre(path_ + ".rank00000: not closed (its process was "
                                  "killed or is still running)"));
}

TEST_F(TraceReaderTest, InvalidNumberOfDroppedEventsIsLeftOut) {
  std::string events;
  for (const char* number : {"9223372036854775807", "9223372036854775807",
                             "-9223372036854775808", "-1", "7"}) {
    absl::StrAppend(&events,
                    "{\"name\":\"hvdlite_dropped_events\",\"ph\":\"M\",",
                    "\"pid\":0,\"args\":{\"dropped_events\":", number, "}},\n");
  }
  const Trace trace = MustRead(Part(0, 1, 0, events + "{}]"));
  EXPECT_EQ(trace.processes.at(0).dropped_events, 7);
  EXPECT_THAT(trace.warnings, ElementsAre(HasSubstr(": 5 events left out")));
}

TEST_F(TraceReaderTest, ReadsOneRankFileAlone) {
  WriteFile(path_ + ".rank00001", Part(1, 2, 0, "]"));
  const absl::StatusOr<Trace> trace = ReadTrace(path_ + ".rank00001");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->processes.size(), 1u);
  EXPECT_THAT(trace->warnings, IsEmpty());
}

TEST_F(TraceReaderTest, MissingAndEmptyRankFilesAreWarnings) {
  WriteFile(path_ + ".rank00001", Part(1, 4, 0, "]"));
  WriteFile(path_ + ".rank00002", "");
  const absl::StatusOr<Trace> trace = ReadTrace(path_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->warnings, ElementsAre(HasSubstr("rank00002 is empty"),
                                           "no events of ranks 0, 2, 3 of 4"));
}

TEST_F(TraceReaderTest, RankFilesOfDifferentRunsAreAWarning) {
  WriteFile(path_ + ".rank00000", Part(0, 2, 0, "]"));
  WriteFile(path_ + ".rank00001", Part(1, 4, 0, "]"));
  const absl::StatusOr<Trace> trace = ReadTrace(path_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_THAT(trace->warnings,
              ::testing::Contains(HasSubstr("worlds of 2, 4 ranks")));
}

TEST_F(TraceReaderTest, RankFilesBesideAMergedFileAreIgnoredWithAWarning) {
  WriteFile(path_ + ".rank00000", Part(0, 1, 0, "]"));
  const Trace trace = MustRead("[]");
  EXPECT_THAT(trace.files, ElementsAre(path_));
  EXPECT_THAT(trace.warnings,
              ElementsAre(HasSubstr("per-rank trace files of another run")));
}

}  // namespace
}  // namespace hvdlite::timeline
