// What ranks add to a gate, and waiting leaves, which count as arrived.
// model_check_test explores how ranks meet at gates otherwise.
#include "negotiation/protocol/gate.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr ProcessSetId kWorld = 0;
constexpr ProcessSetId kLeafAlone = 1;

// A rank of three on one host: 0 is the parent of 1 and 2.
class GateRank {
 public:
  explicit GateRank(int rank)
      : tree_(PlaceInTree(rank, 8, WorldLayout({0, 0, 0}))),
        membership_(rank, 3, tree_),
        gates(rank, tree_, membership_) {
    membership_.Add(kLeafAlone, {2});
  }
  // The messages for `to`.
  std::vector<uint64_t> TakeTo(int to) {
    google::protobuf::RepeatedField<uint64_t> told;
    gates.TakeOutgoing(to, told);
    return {told.begin(), told.end()};
  }

 private:
  const TreePosition tree_;
  Membership membership_;

 public:
  Gates gates;
};

// Delivers all messages from one rank to another.
void Deliver(GateRank& from, int from_rank, GateRank& to, int to_rank) {
  for (const uint64_t gate : from.TakeTo(to_rank)) {
    EXPECT_TRUE(to.gates.OnMessage(from_rank, gate).ok());
  }
}

class WaitingLeavesTest : public ::testing::Test {
 protected:
  void OpenEverywhere(uint64_t number, ProcessSetId set = kWorld,
                      bool counts_on_waiting = true) {
    for (GateRank* rank : {&root_, &first_, &second_}) {
      rank->gates.Open(number, set, counts_on_waiting);
    }
  }
  GateRank root_{0};
  GateRank first_{1};
  GateRank second_{2};
};

// Any rank refuses, and the ranks arrive in any order.
TEST(GateFlagsTest, EveryRankThatPassesKnowsOfARefusal) {
  std::vector<int> order = {0, 1, 2};
  do {
    for (int refuser = 0; refuser < 3; ++refuser) {
      SCOPED_TRACE(absl::StrCat("rank ", refuser, " of ",
                                absl::StrJoin(order, ", "), " refuses"));
      GateRank ranks[] = {GateRank(0), GateRank(1), GateRank(2)};
      for (GateRank& rank : ranks) {
        rank.gates.Open(1, kWorld, /*counts_on_waiting=*/false);
      }
      for (const int rank : order) {
        EXPECT_TRUE(ranks[rank].gates.Arrive(
            1, rank == refuser ? uint32_t{kGateError} : 0u));
        for (const int leaf : {1, 2}) Deliver(ranks[leaf], leaf, ranks[0], 0);
        for (const int leaf : {1, 2}) Deliver(ranks[0], 0, ranks[leaf], leaf);
      }
      for (const GateRank& rank : ranks) {
        EXPECT_THAT(rank.gates.Passed(1), Optional(Eq(kGateError)));
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(WaitingLeavesTest, AreNotAwaited) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1);
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  EXPECT_THAT(root_.gates.Passed(1), Optional(Eq(0u)));
  Deliver(root_, 0, first_, 1);
  EXPECT_TRUE(first_.gates.Arrive(1, 0));
  EXPECT_THAT(first_.gates.Passed(1), Optional(Eq(0u)));
  EXPECT_THAT(first_.TakeTo(0),
              IsEmpty());  // it does not have to send anything
}

TEST_F(WaitingLeavesTest, AreAwaitedAgainAfterOneBucket) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1);
  OpenEverywhere(2);
  EXPECT_TRUE(root_.gates.Arrive(2, 0));
  EXPECT_EQ(root_.gates.Passed(2), std::nullopt);
}

TEST_F(WaitingLeavesTest, AreAwaitedIfTheyReportedSomethingSince) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  root_.gates.OnReport(2, std::nullopt);
  OpenEverywhere(1);
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  EXPECT_THAT(root_.gates.Missing(1), ::testing::ElementsAre(2));
}

// A decision that concerns only a leaf may keep it busy, too.
TEST_F(WaitingLeavesTest, AreAwaitedIfTheyHaveAnEarlierDecision) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1, kLeafAlone);
  OpenEverywhere(2);
  EXPECT_TRUE(root_.gates.Arrive(2, 0));
  EXPECT_THAT(root_.gates.Missing(2), ::testing::ElementsAre(2));
}

TEST_F(WaitingLeavesTest, AreAwaitedIfTheGateDoesNotCountThem) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1, kWorld, /*counts_on_waiting=*/false);
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  EXPECT_EQ(root_.gates.Passed(1), std::nullopt);
}

TEST_F(WaitingLeavesTest, MessagesBeforeTheyKnowAreIgnored) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1);
  EXPECT_TRUE(first_.gates.Arrive(1, 0));
  Deliver(first_, 1, root_, 0);
  EXPECT_TRUE(second_.gates.Arrive(1, 0));
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  EXPECT_THAT(root_.gates.Passed(1), Optional(Eq(0u)));
  root_.gates.Close(1);
  Deliver(second_, 2, root_, 0);
}

TEST_F(WaitingLeavesTest, CannotRefuseAfterBeingCounted) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1);
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  Deliver(root_, 0, first_, 1);
  EXPECT_FALSE(first_.gates.Arrive(1, kGateError));
}

TEST_F(WaitingLeavesTest, StillArriveIfTheWorldIsAbandonedMeanwhile) {
  root_.gates.OnReport(1, 0);
  root_.gates.OnReport(2, 0);
  OpenEverywhere(1);
  EXPECT_TRUE(root_.gates.Arrive(1, 0));
  Deliver(root_, 0, first_, 1);
  first_.gates.Abandon();
  second_.gates.Abandon();
  EXPECT_TRUE(first_.gates.OthersMayBegin(1));
  EXPECT_FALSE(second_.gates.OthersMayBegin(1));
  EXPECT_TRUE(first_.gates.Arrive(1, 0));
  EXPECT_THAT(first_.gates.Passed(1), Optional(Eq(0u)));
}

}  // namespace
}  // namespace hvdlite::negotiation
