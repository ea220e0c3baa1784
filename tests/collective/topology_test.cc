#include "collective/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::collective {
namespace {

using ::testing::ElementsAre;

TEST(TopologyTest, OneProcessIsAWorldOfOne) {
  const Topology topology = MakeTopology(0, {0}, {"alpha"});
  EXPECT_EQ(topology.size, 1);
  EXPECT_EQ(topology.local_size, 1);
  EXPECT_EQ(topology.cross_size, 1);
  EXPECT_THAT(topology.host_of_rank, ElementsAre("alpha"));
}

TEST(TopologyTest, RanksOfAHostAreCountedInRankOrder) {
  // Dealt round to two hosts, and rank 4 alone on a third.
  const int lowest[] = {0, 1, 0, 1, 4, 0};
  const std::vector<std::string> hosts = {"a", "b", "a", "b", "c", "a"};
  const int local_rank[] = {0, 0, 1, 1, 0, 2};
  const int local_size[] = {3, 2, 3, 2, 1, 3};
  const int cross_rank[] = {0, 1, 0, 1, 2, 0};
  for (int rank = 0; rank < 6; ++rank) {
    SCOPED_TRACE(rank);
    const Topology topology = MakeTopology(rank, lowest, hosts);
    EXPECT_EQ(topology.rank, rank);
    EXPECT_EQ(topology.size, 6);
    EXPECT_EQ(topology.local_rank, local_rank[rank]);
    EXPECT_EQ(topology.local_size, local_size[rank]);
    EXPECT_EQ(topology.cross_rank, cross_rank[rank]);
    EXPECT_EQ(topology.cross_size, 3);
    EXPECT_EQ(topology.host_of_rank, hosts);
    EXPECT_THAT(topology.cross_rank_of_rank, ElementsAre(0, 1, 0, 1, 2, 0));
  }
}

TEST(TopologyTest, HostsThatCannotShareMemoryStayApartUnderOneName) {
  const Topology topology = MakeTopology(1, {0, 1}, {"same", "same"});
  EXPECT_EQ(topology.local_size, 1);
  EXPECT_EQ(topology.cross_rank, 1);
  EXPECT_EQ(topology.cross_size, 2);
}

}  // namespace
}  // namespace hvdlite::collective
