#include "collective/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::collective {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TopologyTest, SingleProcessIsAWorldOfOne) {
  const Topology topology = MakeTopology(0, {0}, {"alpha"});
  EXPECT_EQ(topology.size, 1);
  EXPECT_EQ(topology.local_size, 1);
  EXPECT_EQ(topology.cross_size, 1);
  EXPECT_THAT(topology.host_of_rank, ElementsAre("alpha"));
}

TEST(TopologyTest, HostsOfOneNameAreSplitByIdentity) {
  EXPECT_THAT(SplitHosts({0, 0, 0, 0}, {7, 7, 7, 7}),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(SplitHosts({0, 0, 0, 3, 0}, {7, 8, 7, 7, 8}),
              ElementsAre(0, 1, 0, 3, 1));
}

TEST(TopologyTest, MachinesOfOneNameGetDifferentNames) {
  EXPECT_THAT(NameMachinesApart({"a", "b", "a"}, {1, 2, 1}),
              ElementsAre("a", "b", "a"));
  EXPECT_THAT(NameMachinesApart({"a", "a", "b", "a", "a", "b"},
                                {1, 2, 3, 1, 4, 2}),
              ElementsAre("a", "a#2", "b", "a", "a#3", "b#2"));
}

TEST(TopologyTest, RanksOfAHostAreCountedInRankOrder) {
  // Distributed round-robin to two hosts, and rank 4 alone on a third.
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

TEST(TopologyTest, HostsThatCannotShareMemoryStaySeparateUnderOneName) {
  const Topology topology = MakeTopology(1, {0, 1}, {"same", "same"});
  EXPECT_EQ(topology.local_size, 1);
  EXPECT_EQ(topology.cross_rank, 1);
  EXPECT_EQ(topology.cross_size, 2);
}

// A world of `size` ranks on one host, from the view of rank `rank`.
Topology OneHost(int rank, int size) {
  return MakeTopology(rank, std::vector<int>(size, 0),
                      std::vector<std::string>(size, "a"));
}

std::string ErrorOf(const Topology& topology, const std::string& sizes) {
  const absl::Status status = WithVirtualNodes(topology, sizes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << sizes;
  return std::string(status.message());
}

TEST(VirtualNodesTest, HostIsSplitIntoNodesOfTheGivenSizes) {
  const int local_rank[] = {0, 1, 0};
  const int local_size[] = {2, 2, 1};
  const int cross_rank[] = {0, 0, 1};
  for (int rank = 0; rank < 3; ++rank) {
    SCOPED_TRACE(rank);
    const auto topology = WithVirtualNodes(OneHost(rank, 3), "2,1");
    ASSERT_TRUE(topology.ok()) << topology.status();
    EXPECT_EQ(topology->rank, rank);
    EXPECT_EQ(topology->size, 3);
    EXPECT_EQ(topology->local_rank, local_rank[rank]);
    EXPECT_EQ(topology->local_size, local_size[rank]);
    EXPECT_EQ(topology->cross_rank, cross_rank[rank]);
    EXPECT_EQ(topology->cross_size, 2);
    EXPECT_THAT(topology->cross_rank_of_rank, ElementsAre(0, 0, 1));
    EXPECT_THAT(topology->host_of_rank, ElementsAre("a", "a", "a"));
  }
}

TEST(VirtualNodesTest, LastSizeIsRepeatedForRemainingRanks) {
  const auto equal = WithVirtualNodes(OneHost(3, 4), "2");
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_THAT(equal->cross_rank_of_rank, ElementsAre(0, 0, 1, 1));
  const auto mixed = WithVirtualNodes(OneHost(0, 5), "3,1");
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_THAT(mixed->cross_rank_of_rank, ElementsAre(0, 0, 0, 1, 2));
}

TEST(VirtualNodesTest, NoSizesChangeNothing) {
  const auto topology = WithVirtualNodes(OneHost(1, 3), "");
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->local_size, 3);
  EXPECT_EQ(topology->local_rank, 1);
  EXPECT_TRUE(CheckVirtualNodes(3, "").ok());
}

TEST(VirtualNodesTest, HostsAreSplitButNeverJoined) {
  const int lowest[] = {0, 0, 2, 2};
  const Topology hosts = MakeTopology(2, lowest, {"a", "a", "b", "b"});
  const auto split = WithVirtualNodes(hosts, "2,1");
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_THAT(split->cross_rank_of_rank, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(ErrorOf(hosts, "1,2,1"),
              AllOf(HasSubstr("rank 1 (a)"), HasSubstr("rank 2 (b)")));
}

TEST(VirtualNodesTest, SizesThatDoNotFitTheWorldAreAnErrorOnEveryRank) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(ErrorOf(OneHost(rank, 3), "2,2"),
                HasSubstr("'2,2' need more ranks than the world has, 3"));
    EXPECT_THAT(ErrorOf(OneHost(rank, 3), "2"),
                HasSubstr("1 of the 3 ranks remain"));
    EXPECT_EQ(ErrorOf(OneHost(rank, 3), "2"), ErrorOf(OneHost(0, 3), "2"));
  }
}

TEST(VirtualNodesTest, InvalidSizeIsReportedBeforeAMismatch) {
  EXPECT_THAT(ErrorOf(OneHost(0, 3), "9,two"),
              HasSubstr("'two' is not a number"));
}

}  // namespace
}  // namespace hvdlite::collective
