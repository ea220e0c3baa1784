#include "negotiation/protocol/decision_queue.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

using Arrival = DecisionQueue::Arrival;

// The queues of rank 0 and of its child, rank 1.
class DecisionQueueTest : public ::testing::Test {
 protected:
  struct Rank {
    explicit Rank(int rank)
        : tree(PlaceInTree(rank, 8, WorldLayout({0, 0}))),
          membership(rank, 2, tree),
          queue({.rank = rank,
                 .at_gate = [this](const Decision&) { return flags; }},
                tree, membership) {}
    TreePosition tree;
    Membership membership;
    std::optional<uint32_t> flags = 0;  // nullopt: not yet
    DecisionQueue queue;
    uint64_t sent = 0;
  };

  static Decision Failure(uint64_t number) {
    Decision failure;
    failure.kind = Decision::Kind::kFailure;
    failure.number = number;
    return failure;
  }

  static void PushBucket(Rank& rank, uint64_t number) {
    Decision bucket;
    bucket.number = number;
    bucket.name = "x";
    rank.queue.OpenGate(bucket);
    rank.queue.Push(std::move(bucket));
  }

  // Delivers the news from one rank to another; false if there are none.
  static bool Tell(Rank& from, Rank& to, int from_rank, int to_rank) {
    wire::Message message;
    from.queue.AddNews(to_rank, message);
    if (message.gates().empty()) return false;
    from.queue.OnSend(message, ++from.sent);
    EXPECT_TRUE(to.queue.OnMessage(from_rank, message).ok());
    return true;
  }

  Rank root_{0};
  Rank leaf_{1};
};

TEST_F(DecisionQueueTest, DecisionWithoutGateBeginsInItsTurn) {
  root_.queue.Push(Failure(1));
  PushBucket(root_, 2);
  EXPECT_EQ(root_.queue.ComeToGate(0), Arrival::kNone) << "not its turn";
  ASSERT_EQ(root_.queue.Begin(0)->number, 1);
  EXPECT_EQ(root_.queue.ComeToGate(0), Arrival::kAtGate);
  EXPECT_EQ(root_.queue.ComeToGate(0), Arrival::kNone) << "it is there";
  EXPECT_FALSE(root_.queue.Begin(0).has_value()) << "the leaf is missing";
  EXPECT_EQ(root_.queue.Missing(), std::vector<int>({1}));
}

TEST_F(DecisionQueueTest, BeginsOnceAllHaveArrivedAndKnowIt) {
  PushBucket(root_, 1);
  PushBucket(leaf_, 1);
  ASSERT_EQ(root_.queue.ComeToGate(5), Arrival::kAtGate);
  ASSERT_EQ(leaf_.queue.ComeToGate(6), Arrival::kAtGate);
  ASSERT_TRUE(Tell(root_, leaf_, 0, 1));
  ASSERT_TRUE(Tell(leaf_, root_, 1, 0));
  EXPECT_FALSE(root_.queue.CanBegin(/*delivered=*/0))
      << "the leaf may not know it yet";
  const std::optional<Decision> bucket = root_.queue.Begin(/*delivered=*/1);
  ASSERT_TRUE(bucket.has_value());
  EXPECT_EQ(bucket->arrived_ns, 5);
  EXPECT_TRUE(root_.queue.runs());
  EXPECT_EQ(root_.queue.OnDone(), "x");
  EXPECT_TRUE(root_.queue.idle());
}

TEST_F(DecisionQueueTest, DecisionsWithGatesRunOneAtATime) {
  for (Rank* rank : {&root_, &leaf_}) {
    PushBucket(*rank, 1);
    rank->queue.ComeToGate(0);
  }
  Tell(leaf_, root_, 1, 0);
  Tell(root_, leaf_, 0, 1);
  ASSERT_TRUE(root_.queue.Begin(1).has_value());
  root_.queue.Push(Failure(2));
  EXPECT_FALSE(root_.queue.Begin(1).has_value());
  root_.queue.OnDone();
  EXPECT_TRUE(root_.queue.Begin(1).has_value());
}

TEST_F(DecisionQueueTest, RankThatIsNotReadyForTheGateIsAskedAgain) {
  PushBucket(root_, 1);
  root_.flags = std::nullopt;
  EXPECT_EQ(root_.queue.ComeToGate(0), Arrival::kNone);
  root_.flags = 0;
  EXPECT_EQ(root_.queue.ComeToGate(0), Arrival::kAtGate);
}

TEST_F(DecisionQueueTest, AbortDropsGatesThatNoRankCanHaveEntered) {
  PushBucket(root_, 1);
  root_.queue.Push(Failure(2));
  root_.queue.Abandon();
  ASSERT_NE(root_.queue.next(), nullptr);
  EXPECT_EQ(root_.queue.next()->number, 2);
}

}  // namespace
}  // namespace hvdlite::negotiation
