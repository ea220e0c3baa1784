#include "tools/timeline_viewer/repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"

namespace hvdlite::timeline_viewer {
namespace {

using ::testing::HasSubstr;
using timeline::ReadWholeFile;
using timeline::WriteFile;

constexpr char kPart[] = R"([
{"name":"process_name","ph":"M","pid":0,"tid":1,"args":{"name":"rank 0"}},
{"ts":1.000,"dur":2.000,"ph":"X","name":"a","pid":0,"tid":1},
{"ts":3.000,"dur":2.000,"ph":"X","name":"b ü \"{\"","pid":0,"tid":1},
{"ts":4.000,"ph":"C","name":"MEMORY","pid":0,"tid":1,"args":{"bytes":1}}
]
)";

constexpr char kObject[] = R"({"schemaVersion": 1, "other": [{"ph": "X"}],
  "traceEvents": [
  {
    "ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 5,
    "args": { "dims": [[1, 2], []], "deep": {"a": {}} }
  }, {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 2, "dur": 1}
  ], "traceName": "x.json"})";

class RepairTest : public ::testing::Test {
 protected:
  absl::StatusOr<Repair> Repaired(const std::string& text) {
    WriteFile(path_, text);
    return RepairTraceFile(path_, out_);
  }

  // The complete events of `text`.
  static std::vector<std::string> WholeEvents(const std::string& text) {
    std::vector<std::string> events;
    timeline::ParseTraceEvents(text, [&](const timeline::ParsedEvent& event) {
      events.emplace_back(event.text);
    });
    return events;
  }

  // The same for the output, which must be JSON.
  std::vector<std::string> Written() {
    const std::string text = ReadWholeFile(out_);
    const auto json = nlohmann::json::parse(text, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << text;
    for (const auto& event : json.is_object() ? json["traceEvents"] : json) {
      EXPECT_TRUE(event.is_object()) << text;
    }
    return WholeEvents(text);
  }

  const timeline::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
  const std::string out_ = directory_.File("repaired.json");
};

TEST_F(RepairTest, EveryCutKeepsTheCompleteEvents) {
  for (const std::string whole : {kPart, kObject}) {
    for (size_t length = 0; length <= whole.size(); ++length) {
      const std::string cut = whole.substr(0, length);
      const std::vector<std::string> events = WholeEvents(cut);
      const auto repair = Repaired(cut);
      if (events.empty()) {
        EXPECT_THAT(std::string(repair.status().message()),
                    HasSubstr("trace.json has no complete event"));
        EXPECT_FALSE(std::filesystem::exists(out_));
        continue;
      }
      ASSERT_TRUE(repair.ok()) << repair.status() << " " << cut;
      EXPECT_EQ(Written(), events) << cut;
      EXPECT_EQ(repair->events, static_cast<int64_t>(events.size()));
      // Everything is there that is not reported as lost.
      const size_t blank = whole.find_last_not_of(" \n") + 1;
      EXPECT_EQ(repair->lost.empty(), length >= blank) << cut;
      // Only the cut event is lost.
      EXPECT_LT(repair->lost_bytes, 250) << cut;
      std::filesystem::remove(out_);
    }
  }
}

TEST_F(RepairTest, CompleteTraceIsUnchanged) {
  ASSERT_TRUE(Repaired(kPart).ok());
  EXPECT_EQ(ReadWholeFile(out_), kPart);
  ASSERT_TRUE(Repaired(kObject).ok());
  EXPECT_EQ(nlohmann::json::parse(ReadWholeFile(out_)),
            nlohmann::json::parse(kObject));
}

TEST_F(RepairTest, ReportsLosses) {
  std::string damaged = kPart;
  const size_t line = damaged.find("{\"ts\":1.000");
  damaged[damaged.find("\"ph\"", line)] = '\0';
  const auto repair = Repaired(damaged);
  ASSERT_TRUE(repair.ok()) << repair.status();
  EXPECT_EQ(repair->events, 3);
  ASSERT_EQ(repair->lost.size(), 1u);
  EXPECT_THAT(repair->lost[0], HasSubstr(absl::StrCat("60 bytes from byte ",
                                                      line, ": damaged")));
  EXPECT_EQ(repair->lost_bytes, 60);
  EXPECT_EQ(Written().size(), 3u);
}

TEST_F(RepairTest, WrongByteLosesAtMostTwoEvents) {
  for (const std::string whole : {kPart, kObject}) {
    const size_t events = WholeEvents(whole).size();
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const char wrong : std::string("{]\"\0", 4)) {
        std::string damaged = whole;
        damaged[at] = wrong;
        const auto repair = Repaired(damaged);
        if (!repair.ok()) continue;
        const std::vector<std::string> written = Written();
        EXPECT_EQ(static_cast<size_t>(repair->events), written.size());
        if (whole == kPart && !(whole[at] == '\n' && wrong == '[')) {
          EXPECT_GE(written.size() + 2, events) << at << " " << wrong;
        }
        if (repair->lost.empty()) {
          EXPECT_EQ(repair->lost_bytes, 0);
        }
      }
    }
  }
}

TEST_F(RepairTest, TextAfterTheEndIsLost) {
  const auto padded = Repaired(kPart + std::string(20, '\0'));
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_TRUE(padded->lost.empty());
  EXPECT_EQ(ReadWholeFile(out_), kPart);
  const auto more = Repaired(kObject + std::string(20, '\0') + "{}");
  ASSERT_TRUE(more.ok()) << more.status();
  ASSERT_EQ(more->lost.size(), 1u);
  EXPECT_THAT(more->lost[0], HasSubstr("2 bytes from byte"));
  EXPECT_EQ(nlohmann::json::parse(ReadWholeFile(out_)),
            nlohmann::json::parse(kObject));
}

TEST_F(RepairTest, EventsAfterAnObjectWithoutEventsAreKept) {
  const auto repair =
      Repaired("{\"a\":1},\n{\"ph\":\"X\"},\n{\"ph\":\"i\"}\n]");
  ASSERT_TRUE(repair.ok()) << repair.status();
  EXPECT_EQ(repair->lost_bytes, 7);
  EXPECT_EQ(Written().size(), 2u);
}

TEST_F(RepairTest, ObjectKeepsItsOtherMembers) {
  std::string damaged = kObject;
  damaged[damaged.find("\"dims\"")] = '\n';
  ASSERT_TRUE(Repaired(damaged).ok());
  const auto json = nlohmann::json::parse(ReadWholeFile(out_));
  EXPECT_EQ(json["schemaVersion"], 1);
  EXPECT_EQ(json["traceName"], "x.json");
  ASSERT_EQ(json["traceEvents"].size(), 1u);
  EXPECT_EQ(json["traceEvents"][0]["name"], "b");
}

TEST_F(RepairTest, PackedTracesAreReadAndWritten) {
  const std::string packed = directory_.File("packed.json.gz");
  WriteFile(path_, kPart);
  ASSERT_TRUE(RepairTraceFile(path_, packed).ok());
  const std::string bytes = ReadWholeFile(packed);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(timeline::ReadTraceText(packed)->text, kPart);
  WriteFile(packed, bytes.substr(0, bytes.size() - 20));
  const auto repair = RepairTraceFile(packed, out_);
  ASSERT_TRUE(repair.ok()) << repair.status();
  EXPECT_GE(Written().size(), 2u);
  EXPECT_THAT(repair->lost.front(), HasSubstr("packed.json.gz: cut off"));
}

TEST_F(RepairTest, FailedWriteIsAnError) {
  WriteFile(path_, kPart);
  EXPECT_THAT(
      std::string(
          RepairTraceFile(path_, directory_.File("")).status().message()),
      HasSubstr("is not a regular file"));
  EXPECT_THAT(std::string(RepairTraceFile(path_, directory_.File("no/x.json"))
                              .status()
                              .message()),
              HasSubstr("cannot write"));
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
