#include <barrier>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/channel/shm/shm_channel.h"
#include "negotiation/protocol/tree.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/fakes/forwarding_channel.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;
using hvdlite::testing::Receive;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Counts the calls that it forwards; may be a channel that has to be polled.
class SpiedChannel final : public hvdlite::testing::ForwardingChannel {
 public:
  struct Record {
    std::vector<int> sent_to;
    int prepared = 0;
  };

  SpiedChannel(std::unique_ptr<ControlChannel> base, bool polled,
               Record* record)
      : ForwardingChannel(std::move(base)), polled_(polled), record_(*record) {}

  absl::Status Send(int to, std::string bytes) override {
    record_.sent_to.push_back(to);
    return ForwardingChannel::Send(to, std::move(bytes));
  }
  std::vector<int> wake_descriptors() const override {
    return polled_ ? std::vector<int>{} : ForwardingChannel::wake_descriptors();
  }
  bool PrepareToSleep() override {
    ++record_.prepared;
    return ForwardingChannel::PrepareToSleep();
  }

 private:
  const bool polled_;
  Record& record_;
};

std::shared_ptr<const WorldLayout> Layout(std::vector<int> node_of_rank) {
  return std::make_shared<WorldLayout>(std::move(node_of_rank));
}

struct Rank {
  ControlChannel& channel;
  const SpiedChannel::Record& world;
  hvdlite::testing::Barrier barrier;
};

// Runs `body` on a thread per rank, with shared memory in each node and an
// in-process world channel.
void OnRanks(const std::vector<int>& node_of_rank, bool polled,
             const std::function<void(const Rank&)>& body) {
  const int size = static_cast<int>(node_of_rank.size());
  std::map<int, int> size_of_node;
  std::vector<int> local_rank;
  for (const int node : node_of_rank) {
    local_rank.push_back(size_of_node[node]++);
  }
  std::map<int, std::vector<std::unique_ptr<collective::Communicator>>> nodes;
  for (const auto& [node, ranks] : size_of_node) {
    nodes[node] = collective::CreateInProcessWorld(ranks);
  }
  const auto layout = std::make_shared<WorldLayout>(node_of_rank);
  auto world = CreateInProcessChannels(size).value();
  std::barrier barrier(size);
  hvdlite::testing::RunRanks(size, [&](int rank) {
    auto node = CreateShmChannel(
        *nodes.at(node_of_rank[rank])[static_cast<size_t>(local_rank[rank])]);
    ASSERT_TRUE(node.ok()) << node.status();
    SpiedChannel::Record record;
    const auto channel =
        CreateRoutedChannel(rank, layout, *std::move(node),
                            std::make_unique<SpiedChannel>(
                                std::move(world[rank]), polled, &record));
    EXPECT_EQ(channel->rank(), rank);
    EXPECT_EQ(channel->size(), size);
    EXPECT_EQ(channel->layout(), layout);
    body({*channel, record, [&] { barrier.arrive_and_wait(); }});
  });
}

using Case = std::tuple<std::vector<int>, bool, ControlChannelCheck>;
class RoutedChannelConformance : public ::testing::TestWithParam<Case> {};

TEST_P(RoutedChannelConformance, Conforms) {
  const auto& [node_of_rank, polled, check] = GetParam();
  OnRanks(node_of_rank, polled, [&, &check = check](const Rank& rank) {
    check.run(rank.channel, rank.barrier);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, RoutedChannelConformance,
    ::testing::Combine(
        ::testing::Values(std::vector<int>{0}, std::vector<int>{0, 0, 0},
                          std::vector<int>{0, 1}, std::vector<int>{0, 0, 1, 1},
                          std::vector<int>{0, 1, 0, 1, 0},
                          std::vector<int>{0, 0, 0, 1}),
        ::testing::Bool(),
        ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks)),
    [](const auto& info) {
      std::string name(std::get<2>(info.param).name);
      absl::StrAppend(&name, "_Nodes");
      for (const int node : std::get<0>(info.param)) {
        absl::StrAppend(&name, node);
      }
      return absl::StrCat(name,
                          std::get<1>(info.param) ? "_Polled" : "_Sleeping");
    });

TEST(RoutedChannelTest, OnlyMessagesToOtherNodesUseTheWorldChannel) {
  OnRanks({0, 1, 0, 1, 1}, false, [](const Rank& rank) {
    if (rank.channel.rank() == 3) {
      for (const int to : {0, 1, 2, 4}) {
        ASSERT_TRUE(rank.channel.Send(to, absl::StrCat("for ", to)).ok());
      }
      EXPECT_THAT(rank.world.sent_to, ElementsAre(0, 2));
    } else {
      const ControlMessage message = Receive(rank.channel);
      EXPECT_EQ(message.from, 3);
      EXPECT_EQ(message.bytes, absl::StrCat("for ", rank.channel.rank()));
    }
  });
}

TEST(RoutedChannelTest, SleepsOnAndPreparesBothChannels) {
  OnRanks({0, 0, 1, 1}, false, [](const Rank& rank) {
    EXPECT_THAT(rank.channel.wake_descriptors(), SizeIs(3));
    EXPECT_FALSE((*rank.channel.TryReceive()).has_value());
    EXPECT_TRUE(rank.channel.PrepareToSleep());
    EXPECT_EQ(rank.world.prepared, 1);
    EXPECT_EQ(std::string(rank.channel.name()), "SHM+IN_PROCESS");
  });
}

TEST(RoutedChannelTest, IsPolledOnlyIfANeededWorldChannelIsPolled) {
  OnRanks({0, 0, 1}, true, [](const Rank& rank) {
    EXPECT_THAT(rank.channel.wake_descriptors(), IsEmpty());
  });
  OnRanks({0, 0, 0}, true, [](const Rank& rank) {
    EXPECT_THAT(rank.channel.wake_descriptors(), SizeIs(2));
    EXPECT_EQ(std::string(rank.channel.name()), "SHM");
  });
}

TEST(RoutedChannelTest, UnneededChannelsMayBeNull) {
  auto channels = CreateInProcessChannels(2).value();
  std::vector<std::unique_ptr<ControlChannel>> ranks;
  // There is only one node.
  ranks.push_back(
      CreateRoutedChannel(0, Layout({0, 0}), std::move(channels[0]), nullptr));
  // This rank is alone on its node.
  ranks.push_back(
      CreateRoutedChannel(1, Layout({0, 1}), nullptr, std::move(channels[1])));
  ASSERT_TRUE(ranks[0]->Send(1, "x").ok());
  EXPECT_EQ(Receive(*ranks[1]).from, 0);
  ASSERT_TRUE(ranks[1]->Send(0, "y").ok());
  EXPECT_EQ(Receive(*ranks[0]).from, 1);
}

// Fails, or has a message that cannot be delivered, as configured.
class BrokenChannel final : public ControlChannel {
 public:
  BrokenChannel(int rank, int size, absl::Status received, absl::Status flushed)
      : rank_(rank), size_(size), received_(received), flushed_(flushed) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "BROKEN"; }
  absl::Status Send(int, std::string) override { return absl::OkStatus(); }
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    if (!received_.ok()) return received_;
    return std::nullopt;
  }
  uint64_t delivered() override { return 0; }
  absl::Status Flush(absl::Duration) override { return flushed_; }
  std::vector<int> wake_descriptors() const override { return {}; }
  std::vector<std::string> TakeWarnings() override { return {warning}; }

  std::string warning;

 private:
  const int rank_;
  const int size_;
  const absl::Status received_;
  const absl::Status flushed_;
};

TEST(RoutedChannelTest, RankThatDoesNotLeadItsNodeReachesOnlyItsNode) {
  const auto follower = CreateRoutedChannel(
      2, Layout({0, 0, 0, 1}),
      std::make_unique<BrokenChannel>(2, 3, absl::OkStatus(), absl::OkStatus()),
      /*world=*/nullptr);
  EXPECT_TRUE(follower->Send(0, "near").ok());
  const absl::Status far = follower->Send(3, "far");
  EXPECT_TRUE(absl::IsInvalidArgument(far)) << far;
  EXPECT_FALSE((*follower->TryReceive()).has_value());
  EXPECT_TRUE(follower->Flush(absl::ZeroDuration()).ok());
}

TEST(RoutedChannelTest, WarningsOfBothChannelsAreReturned) {
  const auto warning = [](int size, std::string text) {
    auto channel = std::make_unique<BrokenChannel>(0, size, absl::OkStatus(),
                                                   absl::OkStatus());
    channel->warning = std::move(text);
    return channel;
  };
  const auto leader =
      CreateRoutedChannel(0, Layout({0, 0, 1}), warning(2, "of the node"),
                          warning(3, "of the world"));
  EXPECT_THAT(leader->TakeWarnings(),
              ElementsAre("of the node", "of the world"));
}

TEST(RoutedChannelTest, ErrorsOfEitherChannelAreReturned) {
  const absl::Status dead = absl::UnavailableError("dead");
  const absl::Status late = absl::DeadlineExceededError("late");
  const auto routed = [](BrokenChannel node, BrokenChannel world) {
    return CreateRoutedChannel(0, Layout({0, 0, 1}),
                               std::make_unique<BrokenChannel>(node),
                               std::make_unique<BrokenChannel>(world));
  };
  const BrokenChannel good_node(0, 2, {}, {});
  const BrokenChannel good_world(0, 3, {}, {});
  const BrokenChannel late_node(0, 2, {}, late);
  const BrokenChannel dead_world(0, 3, dead, dead);
  EXPECT_EQ(routed(good_node, dead_world)->TryReceive().status(), dead);
  EXPECT_EQ(
      routed(BrokenChannel(0, 2, dead, {}), good_world)->TryReceive().status(),
      dead);
  EXPECT_EQ(routed(late_node, good_world)->Flush(absl::Milliseconds(2)), late);
  // A broken channel stays broken.
  EXPECT_EQ(routed(late_node, dead_world)->Flush(absl::InfiniteDuration()),
            dead);
  EXPECT_TRUE(routed(good_node, good_world)->Flush(absl::ZeroDuration()).ok());
}

}  // namespace
}  // namespace hvdlite::negotiation
