#include "negotiation/protocol/tree.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::IsEmpty;

TEST(TreeTest, RanksOfAHostReportToTheLowestOne) {
  const WorldLayout hosts({0, 0, 0, 1, 1, 1});
  const TreePosition root = PlaceInTree(0, 8, hosts);
  EXPECT_EQ(root.parent, -1);
  EXPECT_EQ(root.height, 2);
  ASSERT_EQ(root.children.size(), 3u);
  EXPECT_EQ(root.children[2].subtree.ToString(), "ranks 3-5");
  EXPECT_EQ(PlaceInTree(5, 8, hosts).parent, 3);
  EXPECT_EQ(PlaceInTree(3, 8, hosts).parent, 0);
  EXPECT_THAT(PlaceInTree(4, 8, hosts).children, IsEmpty());
}

TEST(TreeTest, EveryRankIsInTheTreeOnceAndDegreesAreBounded) {
  for (const int size : {1, 2, 3, 10, 64, 200}) {
    for (const int per_host : {1, 3, 8}) {
      for (const int arity : {1, 2, 8}) {
        std::vector<int> host_of_rank;
        // Ranks are dealt round robin, as with --map-by node.
        const int num_hosts = (size + per_host - 1) / per_host;
        for (int r = 0; r < size; ++r) host_of_rank.push_back(r % num_hosts);
        const WorldLayout hosts(host_of_rank);
        std::multiset<int> children;
        for (int r = 0; r < size; ++r) {
          const TreePosition place = PlaceInTree(r, arity, hosts);
          EXPECT_LE(static_cast<int>(place.children.size()), 2 * arity);
          for (const auto& child : place.children) {
            children.insert(child.rank);
            EXPECT_EQ(PlaceInTree(child.rank, arity, hosts).parent, r);
            EXPECT_EQ(child.subtree.runs().front().first, child.rank);
          }
        }
        EXPECT_EQ(static_cast<int>(children.size()), size - 1);
        EXPECT_EQ(children.count(0), 0u);
        for (int r = 1; r < size; ++r) EXPECT_EQ(children.count(r), 1u);
      }
    }
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
