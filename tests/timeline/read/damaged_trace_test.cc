// A file may end anywhere: all complete events before the end are still read.
// It may be damaged anywhere: the events of other lines are still read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

const base::SteadyClock kClock;

// Counts complete events of `text` by their newlines or closing brackets.
int64_t CountWholeEvents(const std::string& text, bool one_per_line) {
  int64_t events = 0;
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (c == '}' && --depth == (one_per_line ? 0 : 1)) ++events;
  }
  return events;
}

void CheckEveryCut(const std::string& whole, bool one_per_line) {
  for (size_t length = 0; length <= whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    int64_t events = 0;
    const ParseReport report =
        ParseTraceEvents(cut, [&events](const ParsedEvent&) { ++events; });
    EXPECT_EQ(events, CountWholeEvents(cut, one_per_line)) << cut;
    EXPECT_EQ(report.events, events);
    EXPECT_EQ(report.damaged_places, 0) << cut;
  }
}

std::string RecordedPart(const TemporaryDirectory& directory, int events) {
  TraceRecorder::Options options;
  options.path = directory.File("trace.json");
  options.host = "node1";
  auto recorder = TraceRecorder::Open(options, kClock);
  EXPECT_TRUE(recorder.ok());
  for (int i = 0; i < events; ++i) {
    (*recorder)->Record({.name = "ALLREDUCE \xc3\xbc \"\\\n",
                         .track = kFirstTensorTrack + i,
                         .start_ns = i * 1'000'000,
                         .duration_ns = 1'500,
                         .args = {{"bytes", int64_t{12}}, {"late", 0.25}}});
  }
  EXPECT_TRUE((*recorder)->Close().ok());
  return ReadWholeFile(TracePartPath(options.path, 0));
}

TEST(TruncatedTraceTest, EveryCutOfARankFileKeepsTheCompleteEvents) {
  const TemporaryDirectory directory;
  CheckEveryCut(RecordedPart(directory, 2), /*one_per_line=*/true);
}

TEST(TruncatedTraceTest, EveryCutOfAnObjectKeepsTheCompleteEvents) {
  CheckEveryCut(R"({"traceEvents": [
{"name":"process_name","ph":"M","pid":1,"args":{"name":"grad"}},
{"ph":"B","name":"ALLREDUCE","ts":1,"pid":1},
{"ph":"E","ts":2e0,"pid":1}
]})",
                /*one_per_line=*/false);
}

TEST(TruncatedTraceTest, EveryCutOfARankFileButTheEmptyOneLoads) {
  const TemporaryDirectory directory;
  const std::string whole = RecordedPart(directory, 2);
  const std::string path = directory.File("cut.json");
  for (size_t length = 1; length <= whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    WriteFile(path, cut);
    const absl::StatusOr<Trace> trace = ReadTrace(path);
    ASSERT_TRUE(trace.ok()) << trace.status() << " " << cut;
    size_t whole_slices = 0;
    for (size_t at = cut.find("\n{\"ts\""); at != std::string::npos;
         at = cut.find("\n{\"ts\"", at + 1)) {
      if (cut.find("}}", at) != std::string::npos) ++whole_slices;
    }
    EXPECT_EQ(trace->slices.size(), whole_slices) << cut;
  }
}

TEST(DamagedTraceTest, EventsAfterDamageInOneLineAreFound) {
  const std::string text =
      R"({"traceEvents":[{"ph":"X","name":"a","args":{}},{"ph":"X",,"name":"b"},)"
      R"({"ph":"X","name":"c"}, {"ph":"X","name":"d"}],"displayTimeUnit":"ms"})";
  std::vector<std::string> names;
  std::vector<std::string> damaged;
  const ParseReport report = ParseTraceEvents(
      text,
      [&names](const ParsedEvent& event) { names.emplace_back(event.name); },
      [&](const TraceDamage& damage) {
        damaged.push_back(text.substr(damage.at, damage.end - damage.at));
      });
  EXPECT_THAT(names, ::testing::ElementsAre("a", "c", "d"));
  EXPECT_THAT(damaged, ::testing::ElementsAre(R"(,"name":"b"},)"));
  EXPECT_EQ(report.damaged_places, 1);
  EXPECT_TRUE(report.closed);
}

TEST(DamagedTraceTest, WrongByteLosesAtMostItsLineAndTheNext) {
  const TemporaryDirectory directory;
  const std::string whole = RecordedPart(directory, 2);
  const int64_t whole_events = CountWholeEvents(whole, /*one_per_line=*/true);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char wrong : std::string("{}[],:\"\\ \n\0\xff", 12)) {
      // Still valid JSON: the rest becomes an array in the array.
      if (whole[at] == '\n' && wrong == '[') continue;
      std::string text = whole;
      text[at] = wrong;
      int64_t events = 0;
      ParseTraceEvents(text, [&events](const ParsedEvent&) { ++events; });
      EXPECT_GE(events, whole_events - 2) << at << " " << wrong;
      EXPECT_LE(events, whole_events + 1) << at << " " << wrong;
    }
  }
}

}  // namespace
}  // namespace hvdlite::timeline
