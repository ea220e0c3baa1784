#include "tools/timeline_viewer/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/record/trace_event.h"
#include "tools/timeline_viewer/page_facts.h"
#include "tools/timeline_viewer/page_rows.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using timeline::StepPart;
using timeline::Trace;
using timeline::TraceSlice;

// A trace of one process, whose slices are named "a", "b" or "c".
class TraceMaker {
 public:
  TraceMaker() {
    trace_.names = {"a", "b", "c"};
    trace_.processes.try_emplace(0);
  }

  TraceMaker& Add(int64_t start_ns, int64_t duration_ns, size_t name = 0,
                  int64_t tid = 1) {
    trace_.slices.push_back({.pid = 0,
                             .tid = tid,
                             .name = name,
                             .start_ns = start_ns,
                             .duration_ns = duration_ns});
    return *this;
  }

  Trace trace_;
};

TEST(PageRowsTest, NestedSlicesAreBelowTheirParents) {
  TraceMaker maker;
  // The inner slices come first in the file, as hvdlite writes them.
  maker.Add(10, 20).Add(30, 5).Add(5, 50).Add(60, 5).Add(12, 3);
  const std::vector<PageRow> rows = MakePageRows(maker.trace_);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0].slices, ElementsAre(2, 3));
  EXPECT_THAT(rows[1].slices, ElementsAre(0, 1));
  EXPECT_THAT(rows[2].slices, ElementsAre(4));
  EXPECT_EQ(rows[2].depth, 2U);
}

TEST(PageRowsTest, SlicesThatOverlapTooMuchShareTheLastRow) {
  TraceMaker maker;
  const int count = 3 * static_cast<int>(kMostDepths);
  for (int i = 0; i < count; ++i) maker.Add(i, 1000);
  const std::vector<PageRow> rows = MakePageRows(maker.trace_);
  ASSERT_EQ(rows.size(), kMostDepths);
  EXPECT_EQ(rows.back().slices.size(), 1 + 2 * kMostDepths);
  EXPECT_EQ(rows.back().levels.front().front().end_ns,
            static_cast<int64_t>(kMostDepths) - 1 + 15 + 1000);
}

TEST(PageRowsTest, TracksOfARankAreInReadingOrder) {
  TraceMaker maker;
  maker.trace_.processes.at(0).is_rank = true;
  for (const int track :
       {timeline::kFirstTensorTrack, timeline::kBucketTrack,
        timeline::kChunkTrack, timeline::kUserTrack, timeline::kStepTrack}) {
    maker.Add(0, 1, 0, track);
  }
  std::vector<int64_t> tracks;
  for (const PageRow& row : MakePageRows(maker.trace_)) {
    tracks.push_back(row.tid);
  }
  EXPECT_THAT(tracks, ElementsAre(timeline::kStepTrack, timeline::kUserTrack,
                                  timeline::kBucketTrack, timeline::kChunkTrack,
                                  timeline::kFirstTensorTrack));
}

TEST(PageRowsTest, EveryLevelAddsUpToTheSlices) {
  TraceMaker maker;
  int64_t sum_ns = 0;
  int64_t end_ns = 0;
  constexpr int kSlices = 5000;
  for (int i = 0; i < kSlices; ++i) {
    const int64_t duration_ns = 1 + (i * 7919) % 97;
    maker.Add(100 * i, duration_ns);
    sum_ns += duration_ns;
    end_ns = 100 * i + duration_ns;
  }
  const std::vector<PageRow> rows = MakePageRows(maker.trace_);
  ASSERT_EQ(rows.size(), 1U);
  ASSERT_EQ(rows[0].levels.size(), 3U);
  size_t nodes = kSlices;
  for (const std::vector<LevelNode>& level : rows[0].levels) {
    nodes = (nodes + kNodeChildren - 1) / kNodeChildren;
    EXPECT_EQ(level.size(), nodes);
    int64_t busy_ns = 0;
    int64_t last_end_ns = 0;
    for (const LevelNode& node : level) {
      busy_ns += node.busy_ns;
      EXPECT_GE(node.start_ns, last_end_ns);
      EXPECT_LE(node.busy_ns, node.end_ns - node.start_ns);
      last_end_ns = node.end_ns;
    }
    EXPECT_EQ(busy_ns, sum_ns);
    EXPECT_EQ(last_end_ns, end_ns);
  }
}

TEST(PageRowsTest, NodeHasTheNameThatTakesMostTime) {
  TraceMaker maker;
  // "a" is the most frequent, "b" takes most time, on both levels.
  for (int i = 0; i < 300; ++i) {
    maker.Add(100 * i, i % 4 == 0 ? 90 : 5, i % 4 == 0 ? 1 : 0);
  }
  const std::vector<PageRow> rows = MakePageRows(maker.trace_);
  ASSERT_EQ(rows[0].levels.size(), 2U);
  for (const auto& level : rows[0].levels) {
    for (const LevelNode& node : level) EXPECT_EQ(node.name, 1U);
  }
}

TEST(PageRowsTest, CountersOfRanksBecomeRates) {
  Trace trace;
  trace.names = {"PROGRESS_THREAD", "delay_us", "MEMORY", "rss_bytes"};
  trace.processes[0].is_rank = true;
  for (const int64_t second : {1, 2, 4}) {
    trace.counters.push_back({0, 0, second * 1'000'000'000, {{1, 250'000}}});
    trace.counters.push_back({0, 2, second * 1'000'000'000, {{3, 5e6}}});
  }
  const std::vector<PageChart> charts = MakePageCharts(trace);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0].label, "background thread");
  EXPECT_EQ(charts[0].unit, "% of a core");
  // The start of the first sample's interval is unknown.
  EXPECT_THAT(charts[0].lines[0].values, ElementsAre(25, 12.5));
  EXPECT_THAT(charts[0].lines[0].times_ns,
              ElementsAre(2'000'000'000, 4'000'000'000));
  EXPECT_THAT(charts[1].lines[0].values, ElementsAre(5, 5, 5));
}

TEST(PageFactsTest, RowHasColumnsOfItsSlicesAndTheirDetails) {
  TraceMaker maker;
  maker.Add(1000, 20, 1).Add(1050, 5);
  maker.trace_.details = {{.bytes = 64, .picked_up_us = 30}};
  maker.trace_.slices[1].details = 0;
  const std::vector<PageRow> rows = MakePageRows(maker.trace_);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(json::parse(RowData(maker.trace_, rows[0], 1000)), json::parse(R"({
      "slices": {"start": [0, 50], "duration": [20, 5], "name": [1, 0]},
      "said": {"bytes": [-1, 64], "picked_up_us": [-1, 30]},
      "levels": []})"));
  for (int i = 0; i < 20; ++i) maker.Add(2000 + i, 1);
  const json levels = json::parse(
      RowData(maker.trace_, MakePageRows(maker.trace_)[0], 1000))["levels"];
  EXPECT_EQ(levels, json::parse(R"([{"start": [0, 1014], "duration": [1014, 6],
      "busy": [39, 6], "name": [1, 0]}])"));
}

TEST(PageFactsTest, LatenessIsTheLongestWaitMinusTheRanksOwn) {
  timeline::StepAnalysis analysis;
  for (const int64_t rank : {0, 1}) {
    timeline::RankStep step = {.rank = rank, .number = 1};
    At(step.parts, StepPart::kWaitForRanks) = rank == 0 ? 40 : 10;
    At(step.parts, StepPart::kComputing) = rank == 0 ? 60 : 90;
    analysis.steps.push_back(step);
  }
  EXPECT_THAT(LatenessOf(analysis), ElementsAre(0.0, 0.3));
}

TEST(PageFactsTest, TypicalStepHasTheMedianLength) {
  timeline::StepAnalysis analysis;
  EXPECT_EQ(TypicalStep(analysis), 0);
  for (const int64_t number : {1, 2, 3, 4}) {
    // The first step is the longest and not steady.
    timeline::RankStep step = {.number = number};
    At(step.parts, StepPart::kComputing) = number == 1 ? 900 : 100 * number;
    analysis.steps.push_back(step);
  }
  EXPECT_EQ(TypicalStep(analysis), 3);
}

class HtmlPageTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    return RunViewer(arguments, out_, err_);
  }

  // The JSON in the page's element `id`.
  static json Element(const std::string& page, const std::string& id) {
    const std::string begin = absl::StrCat("id=\"", id, "\">");
    const size_t from = page.find(begin) + begin.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
  }

  const timeline::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
  std::ostringstream out_;
  std::ostringstream err_;
};

constexpr char kSmallTrace[] = R"([
  {"ph":"X","name":"outer","pid":7,"tid":1,"ts":10,"dur":100},
  {"ph":"X","name":"inner","pid":7,"tid":1,"ts":20,"dur":30}
])";

TEST_F(HtmlPageTest, IsOneFileThatLoadsNothing) {
  timeline::WriteFile(path_, kSmallTrace);
  ASSERT_EQ(Run({"html", path_}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(path_ + ".html (2 events)"));
  const std::string page = timeline::ReadWholeFile(path_ + ".html");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_LT(page.find("default-src 'none'"), page.find("<style>"));
  EXPECT_LT(page.find("</style>"), page.find("id=\"facts\""));
  EXPECT_LT(page.find("id=\"row1\""), page.find("getElementById"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr(std::string(kPageStyleMark))));
  EXPECT_THAT(page, Not(HasSubstr(std::string(kPageDataMark))));
  EXPECT_THAT(page, Not(HasSubstr(std::string(kPageScriptMark))));
  const json facts = Element(page, "facts");
  EXPECT_EQ(facts["run"]["events"], 2);
  EXPECT_EQ(facts["run"]["span_ns"], 100'000);
  EXPECT_EQ(facts["step"]["known"], false);
  EXPECT_EQ(facts["names"], json({"outer", "inner"}));
  EXPECT_EQ(Element(page, "row0")["slices"]["duration"], json({100'000}));
  EXPECT_EQ(facts["rows"][1], json({7, 1, 1, 1, ""}));
}

TEST_F(HtmlPageTest, NoTextOfATraceBecomesMarkup) {
  const std::string evil = "</script><img src=x onerror=alert(1)><!--";
  timeline::WriteFile(
      path_, absl::StrCat(
                 R"([{"ph":"M","name":"process_name","pid":1,"args":{"name":")",
                 evil, R"("}},{"ph":"M","name":"thread_name","pid":1,"tid":1,)",
                 R"("args":{"name":")", evil, R"("}},)",
                 R"({"ph":"M","name":"hvdlite_trace","pid":1,"args":{"host":")",
                 evil, R"(","size":1,")", evil, R"(":")", evil, R"("}},)",
                 R"({"ph":"C","name":")", evil, R"(","pid":1,"ts":1,"args":{")",
                 evil, R"(":1}},{"ph":"X","name":")", evil,
                 R"(","pid":1,"tid":1,"ts":1,"dur":2,"args":{"tensor":")", evil,
                 R"("}},{"ph":"X","name":"bad )", "\xff\xfe",
                 R"(","pid":1,"tid":1,"ts":5,"dur":2}])"));
  const std::string page_path = directory_.File("<b>.html");
  ASSERT_EQ(Run({"html", path_, "-o", page_path}), 0) << err_.str();
  const std::string page = timeline::ReadWholeFile(page_path);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("</script><img")));
  const json facts = Element(page, "facts");
  EXPECT_EQ(facts["names"][0], evil);
  EXPECT_EQ(facts["processes"][0]["host"], evil);
}

TEST_F(HtmlPageTest, EmptyTraceMakesAPage) {
  timeline::WriteFile(path_, "[]");
  ASSERT_EQ(Run({"html", path_}), 0) << err_.str();
  const json facts = Element(timeline::ReadWholeFile(path_ + ".html"), "facts");
  EXPECT_EQ(facts["rows"], json::array());
  EXPECT_EQ(facts["run"]["span_ns"], 0);
}

TEST_F(HtmlPageTest, FailedWriteIsAnErrorAndLeavesNothing) {
  timeline::WriteFile(path_, kSmallTrace);
  const std::string missing = directory_.File("missing/page.html");
  EXPECT_EQ(Run({"html", path_, "-o", missing}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("missing/page.html"));
  const std::string directory = directory_.File("directory");
  std::filesystem::create_directory(directory);
  EXPECT_EQ(Run({"html", path_, "-o", directory}), 1);
  EXPECT_THAT(err_.str(),
              HasSubstr(directory + "' (--output): it is a directory"));
  EXPECT_EQ(Run({"html", path_, "-o", path_, "--overwrite"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("this command reads"));
  EXPECT_EQ(timeline::ReadWholeFile(path_), kSmallTrace);
}

TEST_F(HtmlPageTest, OverwriteReplacesAnEarlierPage) {
  timeline::WriteFile(path_, kSmallTrace);
  const std::string page_path = directory_.File("page.html");
  timeline::WriteFile(page_path, "earlier");
  EXPECT_EQ(Run({"html", "--output", page_path, path_}), 2);
  EXPECT_EQ(timeline::ReadWholeFile(page_path), "earlier");
  ASSERT_EQ(Run({"html", "--output", page_path, path_, "--overwrite"}), 0)
      << err_.str();
  EXPECT_THAT(timeline::ReadWholeFile(page_path), HasSubstr("<!DOCTYPE html>"));
}

TEST_F(HtmlPageTest, WrongCommandLinesExitWith2) {
  EXPECT_EQ(Run({"html"}), 2);
  EXPECT_EQ(Run({"html", path_, "-o"}), 2);
  EXPECT_EQ(Run({path_, "-o", "page.html"}), 2);
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
