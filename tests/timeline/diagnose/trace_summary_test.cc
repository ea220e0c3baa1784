#include "timeline/diagnose/trace_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/fake_training.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;

class TraceSummaryTest : public ::testing::Test {
 protected:
  void Add(int64_t pid, int64_t tid, const std::string& name, int64_t start_us,
           int64_t end_us) {
    maker_.AddSlice(pid, tid, name, start_us, end_us);
  }

  // "name wall self occurrences", in us.
  static std::vector<std::string> Describe(const TraceSummary& summary) {
    std::vector<std::string> lines;
    for (const NameSummary& name : summary.names) {
      lines.push_back(absl::StrCat(name.name, " ", name.wall_ns / 1000, " ",
                                   name.self_ns / 1000, " ", name.occurrences));
    }
    return lines;
  }

  TraceMaker maker_;
  Trace& trace_ = maker_.trace;
};

TEST_F(TraceSummaryTest, SelfTimeIsWallTimeWithoutDirectChildren) {
  Add(0, 1, "outer", 0, 100);
  Add(0, 1, "middle", 10, 60);
  Add(0, 1, "inner", 20, 30);
  Add(0, 1, "middle", 70, 90);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("inner 10 10 1", "middle 70 60 2", "outer 100 30 1"));
}

TEST_F(TraceSummaryTest, OverlapIsCoveredOnce) {
  Add(0, 1, "a", 0, 100);
  Add(0, 2, "a", 50, 150);
  Add(1, 1, "a", 140, 160);
  Add(1, 1, "b", 155, 170);
  const TraceSummary summary = Summarize(trace_);
  EXPECT_EQ(summary.names.at(0).wall_ns, 220'000);
  EXPECT_EQ(summary.names.at(0).covered_ns, 160'000);
  EXPECT_EQ(summary.names.at(1).covered_ns, 15'000);
  EXPECT_EQ(summary.totals.covered_ns, 170'000);
  EXPECT_EQ(SummarizeByProcess(trace_).at(1).totals.covered_ns, 30'000);
}

TEST_F(TraceSummaryTest, ChildrenMayPrecedeTheirParentsInTheFile) {
  Add(0, 1, "inner", 20, 30);
  Add(0, 1, "middle", 10, 60);
  Add(0, 1, "outer", 0, 100);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("inner 10 10 1", "middle 50 40 1", "outer 100 50 1"));
}

TEST_F(TraceSummaryTest, SlicesOfOtherTracksAndRanksAreNoChildren) {
  Add(0, 10, "a", 0, 100);
  Add(0, 11, "b", 10, 20);
  Add(1, 10, "c", 10, 20);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("a 100 100 1", "b 10 10 1", "c 10 10 1"));
}

TEST_F(TraceSummaryTest, NeighboursThatTouchAreNoChildren) {
  Add(0, 1, "a", 0, 10);
  Add(0, 1, "b", 10, 20);
  Add(0, 1, "b", 20, 20);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("a 10 10 1", "b 10 10 2"));
}

TEST_F(TraceSummaryTest, ChildrenMayShareTheirParentsEdges) {
  Add(0, 1, "left", 0, 4);
  Add(0, 1, "parent", 0, 10);
  Add(0, 1, "right", 6, 10);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("left 4 4 1", "parent 10 2 1", "right 4 4 1"));
}

TEST_F(TraceSummaryTest, EarlierOfTwoEqualSlicesIsTheParent) {
  Add(0, 1, "first", 0, 10);
  Add(0, 1, "second", 0, 10);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("first 10 0 1", "second 10 10 1"));
}

TEST_F(TraceSummaryTest, SlicesThatOnlyOverlapAreNoChildren) {
  Add(0, 1, "a", 0, 10);
  Add(0, 1, "b", 5, 15);
  Add(0, 1, "c", 6, 8);
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("a 10 10 1", "b 10 8 1", "c 2 2 1"));
}

TEST_F(TraceSummaryTest, AverageIsWallTimePerOccurrence) {
  Add(0, 1, "a", 0, 10);
  Add(1, 1, "a", 0, 15);
  Add(2, 1, "a", 0, 15);
  const TraceSummary summary = Summarize(trace_);
  EXPECT_DOUBLE_EQ(summary.names.at(0).average_wall_ns(), 40'000 / 3.0);
  EXPECT_EQ(summary.totals.wall_ns, 40'000);
  EXPECT_EQ(summary.totals.self_ns, 40'000);
  EXPECT_EQ(summary.totals.occurrences, 3);
  EXPECT_DOUBLE_EQ(summary.totals.average_wall_ns(), 40'000 / 3.0);
}

TEST_F(TraceSummaryTest, EmptyTraceHasZeroTotals) {
  const TraceSummary summary = Summarize(trace_);
  EXPECT_TRUE(summary.names.empty());
  EXPECT_EQ(summary.totals.occurrences, 0);
  EXPECT_EQ(summary.totals.average_wall_ns(), 0);
}

TEST_F(TraceSummaryTest, ChunkTracksOfRanksAreLeftOut) {
  Add(0, kBucketTrack, "MPI_ALLREDUCE", 0, 10);
  Add(0, kChunkTrack, "CHUNK", 0, 10);
  Add(1, kChunkTrack, "other program's", 0, 10);
  trace_.processes.at(0).is_rank = true;
  EXPECT_THAT(Describe(Summarize(trace_)),
              ElementsAre("MPI_ALLREDUCE 10 10 1", "other program's 10 10 1"));
  EXPECT_THAT(Describe(SummarizeByProcess(trace_).at(0)),
              ElementsAre("MPI_ALLREDUCE 10 10 1"));
}

TEST_F(TraceSummaryTest, ByProcessAddsUpToTheWhole) {
  Add(0, 1, "a", 0, 10);
  Add(0, 1, "b", 2, 4);
  Add(1, 1, "a", 0, 20);
  const auto summaries = SummarizeByProcess(trace_);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_THAT(Describe(summaries.at(0)), ElementsAre("a 10 8 1", "b 2 2 1"));
  EXPECT_THAT(Describe(summaries.at(1)), ElementsAre("a 20 20 1"));
  EXPECT_THAT(Describe(Summarize(trace_)), ElementsAre("a 30 28 2", "b 2 2 1"));
}

// The longest duration that a trace can hold.
constexpr int64_t kLongest = 6'000'000'000'000'000;  // us
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST_F(TraceSummaryTest, SumsThatDoNotFitBecomeTheLimit) {
  Add(0, 1, "a", 0, kLongest);
  Add(1, 1, "a", 0, kLongest);
  Add(2, 1, "b", 0, kLongest);
  const TraceSummary summary = Summarize(trace_);
  EXPECT_EQ(summary.names.at(0).wall_ns, kMost);
  EXPECT_EQ(summary.names.at(0).self_ns, kMost);
  EXPECT_EQ(summary.names.at(1).wall_ns, kLongest * 1000);
  EXPECT_EQ(summary.totals.wall_ns, kMost);
  EXPECT_EQ(summary.totals.self_ns, kMost);
}

TEST_F(TraceSummaryTest, ChildrenThatOverlapCanTakeMoreThanTheirParent) {
  Add(0, 1, "parent", 0, 10);
  Add(0, 1, "a", 1, 8);
  Add(0, 1, "b", 2, 9);
  EXPECT_EQ(Summarize(trace_).names.at(2).self_ns, -4'000);

  trace_ = Trace();
  Add(0, 1, "parent", 0, kLongest);
  for (int i = 5; i > 0; --i) Add(0, 1, "a", 10 - i, kLongest - i);
  EXPECT_EQ(Summarize(trace_).names.at(1).self_ns,
            std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace hvdlite::timeline
