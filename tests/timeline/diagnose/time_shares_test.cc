#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/fake_training.h"
#include "timeline/diagnose/intervals.h"
#include "timeline/diagnose/trace_summary.h"

namespace hvdlite::timeline {
namespace {

class TimeSharesTest : public ::testing::Test {
 protected:
  void Add(int64_t rank, int64_t track, const std::string& name,
           int64_t start_us, int64_t end_us) {
    maker_.AddRank(rank, 2, "node0");
    maker_.AddSlice(rank, track, name, start_us, end_us);
  }
  std::optional<TimeShares> Shares() const { return SharesOf(maker_.trace); }

  TraceMaker maker_;
};

TEST(IntervalsTest, AdjacentIntervalExtendsTheLast) {
  std::vector<Interval> intervals;
  for (const Interval& interval : std::vector<Interval>{
           {10, 20}, {15, 30}, {5, 10}, {31, 40}, {0, 2}, {40, 41}}) {
    AddTo(&intervals, interval);
  }
  EXPECT_EQ(intervals,
            (std::vector<Interval>{{5, 30}, {31, 40}, {0, 2}, {40, 41}}));
  EXPECT_EQ(UnionOf(std::move(intervals)),
            (std::vector<Interval>{{0, 2}, {5, 30}, {31, 41}}));
}

TEST_F(TimeSharesTest, OverlappingNegotiationsCountOnceAndNotDuringABucket) {
  Add(0, kUserTrack, "FORWARD", 1000, 2000);  // the span: 1000 us
  Add(0, 10, "NEGOTIATE_ALLREDUCE", 1100, 1400);
  Add(0, 11, "NEGOTIATE_ALLREDUCE", 1200, 1500);
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", 1450, 1650);
  Add(0, kBucketTrack, "MPI_ALLREDUCE", 1500, 1600);
  Add(0, 10, "ALLREDUCE", 1450, 1650);
  const std::optional<TimeShares> shares = Shares();
  ASSERT_TRUE(shares.has_value());
  EXPECT_DOUBLE_EQ(shares->negotiating, 0.35);
  EXPECT_DOUBLE_EQ(shares->communicating, 0.2);
  EXPECT_FALSE(shares->exposed.has_value());
}

TEST_F(TimeSharesTest, ExposedTimeIsTheApplicationsWait) {
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", 0, 50);
  Add(0, kUserTrack, kWaitForGradients, 40, 60);
  Add(0, kUserTrack, "STEP", 40, 100);
  EXPECT_DOUBLE_EQ(Shares()->exposed.value(), 0.2);
}

TEST_F(TimeSharesTest, RanksAreAveraged) {
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", 0, 100);
  Add(1, kBucketTrack, "ALLREDUCE_BUCKET", 0, 50);
  Add(1, kUserTrack, kWaitForGradients, 50, 200);
  const std::optional<TimeShares> shares = Shares();
  EXPECT_EQ(shares->ranks, 2);
  EXPECT_DOUBLE_EQ(shares->communicating, (1.0 + 0.25) / 2);
  EXPECT_DOUBLE_EQ(shares->exposed.value(), 0.75 / 2);
}

TEST_F(TimeSharesTest, ChunkTracksDoNotCount) {
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", 0, 50);
  Add(0, kChunkTrack, "CHUNK_BUCKET", 50, 100);
  EXPECT_DOUBLE_EQ(Shares()->communicating, 0.5);
}

TEST_F(TimeSharesTest, OtherProgramsTracesHaveNoShares) {
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", 0, 50);
  maker_.trace.processes[0].is_rank = false;
  EXPECT_FALSE(Shares().has_value());
  EXPECT_FALSE(SharesOf(Trace()).has_value());
}

TEST_F(TimeSharesTest, SpanThatDoesNotFitBecomesTheLimit) {
  constexpr int64_t kEarliest = -4'000'000'000'000'000;
  constexpr int64_t kLatest = 7'000'000'000'000'000;
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", kEarliest, kEarliest / 4);
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", kEarliest / 4, kLatest / 4);
  Add(0, kBucketTrack, "ALLREDUCE_BUCKET", kLatest / 4, kLatest);
  EXPECT_DOUBLE_EQ(Shares()->communicating, 1);
}

}  // namespace
}  // namespace hvdlite::timeline
