#include "timeline/read/trace_merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

const base::SteadyClock kMergeClock;

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TraceMergeTest : public ::testing::Test {
 protected:
  // Rank r has events "e0" ... at 10 us, 20 us, ... of its own clock.
  void RecordPart(int rank, int size, int64_t clock_offset_ns, int events) {
    TraceRecorder::Options options;
    options.path = path_;
    options.rank = rank;
    options.size = size;
    options.host = "node1";
    options.clock_offset_ns = clock_offset_ns;
    auto recorder = TraceRecorder::Open(options, kMergeClock);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    for (int i = 0; i < events; ++i) {
      (*recorder)->Record({.name = "e" + std::to_string(i),
                           .start_ns = 10'000 * (i + 1),
                           .duration_ns = 2'500,
                           .args = {{"text", "}, \"ts\":1.000,"}}});
    }
    ASSERT_TRUE((*recorder)->Close().ok());
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
};

TEST_F(TraceMergeTest, MergedFileHasAllEventsOnTheClockOfRankZero) {
  RecordPart(0, 3, 0, 2);
  RecordPart(1, 3, -9'001, 2);
  RecordPart(2, 3, -15'000, 1);
  ASSERT_TRUE(MergeTraceParts(path_, 3).ok());

  const auto events = nlohmann::json::parse(ReadWholeFile(path_));
  std::map<int, std::vector<double>> times;
  int named_tracks = 0;
  for (const auto& event : events) {
    named_tracks += event["name"] == "thread_name" ? 1 : 0;
    if (event["ph"] != "X") continue;
    times[event["pid"].get<int>()].push_back(event["ts"].get<double>());
    EXPECT_EQ(event["dur"], 2.5);
    EXPECT_EQ(event["tid"], kBucketTrack);
    EXPECT_EQ(event["args"]["text"], "}, \"ts\":1.000,");
  }
  EXPECT_EQ(named_tracks, 3);
  EXPECT_THAT(times[0], ::testing::ElementsAre(10, 20));
  EXPECT_THAT(times[1], ::testing::ElementsAre(0.999, 10.999));
  EXPECT_THAT(times[2], ::testing::ElementsAre(-5));
}

TEST_F(TraceMergeTest, FilesOfAnyDirectoryAreMergedAlike) {
  RecordPart(0, 2, 0, 2);
  RecordPart(1, 2, -9'001, 2);
  const std::string other = directory_.File("other.json");
  const std::vector<std::string> parts = {TracePartPath(path_, 0),
                                          TracePartPath(path_, 1)};
  const auto merged = MergeTraces(parts, other, {});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->at(1).path, parts[1]);
  EXPECT_EQ(merged->at(1).events, 8);
  ASSERT_EQ(merged->at(1).clocks.size(), 1u);
  EXPECT_EQ(merged->at(1).clocks[0].offset_ns, -9'001);
  EXPECT_EQ(merged->at(1).clocks[0].uncertainty_ns, std::nullopt);
  ASSERT_TRUE(MergeTraceParts(path_, 2).ok());
  const auto events_of = [](const std::string& path) {
    auto events = nlohmann::json::parse(ReadWholeFile(path));
    events[2]["args"].erase("applied_clock_offset_ns");  // of rank 0: 0
    return events;
  };
  EXPECT_EQ(events_of(other), events_of(path_));
  // The input files are unchanged.
  const std::string before = ReadWholeFile(other);
  ASSERT_TRUE(MergeTraces({other}, other, {}).ok());
  EXPECT_EQ(ReadWholeFile(other), before);
  EXPECT_EQ(MergeTraces({other, path_}, other, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TraceMergeTest, FilesOfOtherFormsAreMerged) {
  WriteFile(path_, R"([
    {"name":"hvdlite_trace","ph":"M","pid":3,"args":{"clock_offset_ns":1500}},
    {"name":"a","ph":"X","ts":1e0,"dur":2,"pid":3},
    {"name":"cut)");
  const std::string other = directory_.File("other.json");
  const auto merged = MergeTraces({path_}, other, {});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->at(0).warnings.size(), 1u);
  const auto events = nlohmann::json::parse(ReadWholeFile(other));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["args"]["applied_clock_offset_ns"], 1500);
  EXPECT_EQ(events[1]["ts"], 2.5);
  EXPECT_EQ(events[1]["dur"], 2);
}

TEST_F(TraceMergeTest, ReadersDoNotShiftTheMergedFileAgain) {
  RecordPart(0, 2, 0, 1);
  RecordPart(1, 2, 5'000, 1);
  const absl::StatusOr<Trace> parts = ReadTrace(path_);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_TRUE(MergeTraceParts(path_, 2).ok());
  const absl::StatusOr<Trace> merged = ReadTrace(path_);
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ(merged->slices.size(), 2u);
  EXPECT_EQ(merged->slices[1].start_ns, 15'000);
  EXPECT_EQ(parts->slices[1].start_ns, 15'000);
  EXPECT_TRUE(merged->processes.at(1).is_rank);
  EXPECT_EQ(merged->processes.at(1).name, "rank 1 (node1)");
  EXPECT_THAT(merged->warnings, IsEmpty());
}

TEST_F(TraceMergeTest, RemovesOnlyTheRankFiles) {
  RecordPart(0, 2, 0, 1);
  RecordPart(1, 2, 0, 1);
  WriteFile(directory_.File("other.json"), "[]");
  ASSERT_TRUE(MergeTraceParts(path_, 2).ok());
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory_.File(""))) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files,
              ::testing::UnorderedElementsAre("trace.json", "other.json"));
}

TEST_F(TraceMergeTest, MissingRankFileIsAnErrorAndTheOthersStay) {
  RecordPart(0, 2, 0, 1);
  const absl::Status status = MergeTraceParts(path_, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("trace.json.rank00001 of rank 1"));
  EXPECT_TRUE(std::filesystem::exists(TracePartPath(path_, 0)));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".merging"));
}

TEST_F(TraceMergeTest, DeviceIsNotReplacedAndTheRankFilesStay) {
  RecordPart(0, 1, 0, 1);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(MergeTraceParts(path_, 1).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_TRUE(std::filesystem::exists(TracePartPath(path_, 0)));
}

TEST_F(TraceMergeTest, ForeignRankFileIsAnErrorAndTheRankFilesStay) {
  RecordPart(0, 2, 0, 1);
  for (const char* text :
       {"", "[]\n", "hello\n", "[\n{\"ts\":1.000,\"x\":1},\n",
        "[\n{\"name\":\"process_name\"},\n]\n"}) {
    WriteFile(TracePartPath(path_, 1), text);
    EXPECT_EQ(MergeTraceParts(path_, 2).code(), absl::StatusCode::kDataLoss)
        << text;
    EXPECT_TRUE(std::filesystem::exists(TracePartPath(path_, 1)));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
}

TEST_F(TraceMergeTest, TimesThatDoNotFitAreAnErrorAndTheRankFilesStay) {
  const auto part = [](const std::string& offset_ns, const std::string& ts) {
    return "[\n{\"name\":\"hvdlite_trace\",\"args\":{\"clock_offset_ns\":" +
           offset_ns + "}},\n{\"ts\":" + ts + ",\"ph\":\"X\"}\n]\n";
  };
  for (const auto& [offset_ns, ts] :
       std::vector<std::pair<std::string, std::string>>{
           {"1", "9223372036854775807.000"},
           {"1", "9223372036854775.807"},
           {"-1", "-9223372036854775.808"},
           {"9223372036854775807", "0.001"},
           {"9223372036854775808", "1.000"},
           {"1", "--1.000"},
           {"1", "1.-10"},
           {"1", "1. 10"},
           {"1", ".100"}}) {
    WriteFile(TracePartPath(path_, 0), part(offset_ns, ts));
    const absl::Status status = MergeTraceParts(path_, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss)
        << offset_ns << " " << ts << " " << status;
    EXPECT_TRUE(std::filesystem::exists(TracePartPath(path_, 0)));
  }
  WriteFile(TracePartPath(path_, 0),
            part("-9223372036854775807", "9223372036854775.807"));
  EXPECT_TRUE(MergeTraceParts(path_, 1).ok());
  EXPECT_THAT(ReadWholeFile(path_), HasSubstr("{\"ts\":0.000,"));
}

TEST_F(TraceMergeTest, RankFilesCutAnywhereMergeToValidJson) {
  RecordPart(1, 2, 7'000, 3);
  const std::string whole = ReadWholeFile(TracePartPath(path_, 1));
  const size_t header_end = whole.find("\"clock_offset_ns\"");
  const size_t header_line_end = whole.find('\n', header_end) + 1;
  for (size_t length = header_line_end; length <= whole.size(); ++length) {
    RecordPart(0, 2, 0, 1);
    WriteFile(TracePartPath(path_, 1), whole.substr(0, length));
    const absl::Status status = MergeTraceParts(path_, 2);
    ASSERT_TRUE(status.ok()) << status << length;
    EXPECT_TRUE(nlohmann::json::accept(ReadWholeFile(path_))) << length;
  }
}

TEST_F(TraceMergeTest, LargeRankFilesMerge) {
  RecordPart(0, 1, 1'000, 30'000);  // several write blocks
  ASSERT_TRUE(MergeTraceParts(path_, 1).ok());
  const absl::StatusOr<Trace> trace = ReadTrace(path_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->slices.size(), 30'000u);
  for (size_t i = 0; i < trace->slices.size(); ++i) {
    ASSERT_EQ(trace->slices[i].start_ns,
              10'000 * (static_cast<int64_t>(i) + 1) + 1'000);
  }
}

}  // namespace
}  // namespace hvdlite::timeline
