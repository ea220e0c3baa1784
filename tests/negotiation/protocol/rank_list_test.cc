#include "negotiation/protocol/rank_list.h"

#include <vector>

#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

TEST(RankListTest, ConsecutiveRanksAreARun) {
  EXPECT_EQ(FormatRanks({3}), "rank 3");
  EXPECT_EQ(FormatRanks({5, 0, 2, 1}), "ranks 0-2, 5");
  EXPECT_EQ(FormatRanks({7, 9}), "ranks 7, 9");
}

TEST(RankListTest, AdjacentRunsOfSubtreesBecomeOne) {
  RankRuns ranks({8, 9, 30});
  ranks.Add(RankRuns({16, 15, 10}));
  ranks.Add({11, 14});
  EXPECT_EQ(ranks.ToString(), "ranks 8-16, 30");
  EXPECT_EQ(ranks.size(), 10);
  EXPECT_TRUE(ranks.Contains(8));
  EXPECT_TRUE(ranks.Contains(16));
  EXPECT_TRUE(ranks.Contains(30));
  EXPECT_FALSE(ranks.Contains(7));
  EXPECT_FALSE(ranks.Contains(17));
  EXPECT_FALSE(RankRuns().Contains(0));
}

TEST(RankListTest, RunsBeyondTheLowestAreCounted) {
  RankRuns ranks({0, 2, 4, 5, 8});
  ranks.Truncate(2);
  EXPECT_EQ(ranks.ToString(), "ranks 0, 2 and 3 more");
  EXPECT_EQ(ranks.size(), 5);
  EXPECT_EQ(ranks.Lowest(8), (std::vector<int>{0, 2}));
  RankRuns others({1});
  others.Add(ranks);
  EXPECT_EQ(others.ToString(), "ranks 0-2 and 3 more");
}

}  // namespace
}  // namespace hvdlite::negotiation
