#include "negotiation/rank_list.h"

#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

TEST(RankListTest, RunsAreJoined) {
  EXPECT_EQ(FormatRanks({3}), "rank 3");
  EXPECT_EQ(FormatRanks({5, 0, 2, 1}), "ranks 0-2, 5");
  EXPECT_EQ(FormatRanks({7, 9}), "ranks 7, 9");
}

}  // namespace
}  // namespace hvdlite::negotiation
