#include "collective/ring/ring_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collective/ring/allreduce_queue.h"
#include "collective/ring/segmented_exchange.h"

namespace hvdlite::collective {
namespace {

// Messages among ranks of one thread. Bytes travel when the test calls Deliver,
// so that memory that changes too early gives a wrong sum.
class FakeNetwork {
 public:
  explicit FakeNetwork(uint32_t seed) : random_(seed) {}

  std::unique_ptr<PointToPoint> PortOf(int rank) {
    return std::make_unique<Port>(*this, rank);
  }

  // One message between ranks that both have begun it, if there is any.
  void Deliver() {
    std::vector<Channel*> ready;
    for (auto& [key, channel] : channels_) {
      if (!channel.sends.empty() && !channel.receives.empty()) {
        ready.push_back(&channel);
      }
    }
    if (ready.empty()) return;
    Channel& channel = *ready[random_() % ready.size()];
    const auto [sent, from] = channel.sends.front();
    const auto [received, to] = channel.receives.front();
    channel.sends.pop_front();
    channel.receives.pop_front();
    ASSERT_EQ(from.size(), to.size());
    std::memcpy(to.data(), from.data(), from.size());
    done_[sent] = done_[received] = true;
  }

  // How many messages nobody has seen the end of.
  size_t under_way() const { return done_.size(); }
  // From now on every call fails.
  void Break() { status_ = absl::UnavailableError("the link is cut"); }

 private:
  template <typename Byte>
  struct Side {
    PointToPoint::Id id;
    absl::Span<Byte> bytes;
  };
  struct Channel {
    std::deque<Side<const std::byte>> sends;
    std::deque<Side<std::byte>> receives;
  };

  class Port final : public PointToPoint {
   public:
    Port(FakeNetwork& network, int rank) : network_(network), rank_(rank) {}

    absl::StatusOr<Id> Send(int to, int tag,
                            absl::Span<const std::byte> bytes) override {
      if (!network_.status_.ok()) return network_.status_;
      const Id id = network_.NewId();
      network_.channels_[{rank_, to, tag}].sends.push_back({id, bytes});
      sent_[id] = bytes;
      return id;
    }
    absl::StatusOr<Id> Receive(int from, int tag,
                               absl::Span<std::byte> bytes) override {
      if (!network_.status_.ok()) return network_.status_;
      for (const auto& [id, sent] : sent_) {
        EXPECT_FALSE(bytes.data() < sent.data() + sent.size() &&
                     sent.data() < bytes.data() + bytes.size())
            << "receives where something is being sent";
      }
      const Id id = network_.NewId();
      network_.channels_[{from, rank_, tag}].receives.push_back({id, bytes});
      return id;
    }
    absl::StatusOr<bool> Test(Id id) override {
      if (!network_.status_.ok()) return network_.status_;
      if (!network_.done_.at(id)) return false;
      network_.done_.erase(id);
      sent_.erase(id);
      return true;
    }
    size_t under_way() const override { return network_.under_way(); }
    void Cancel(Id id) override { EXPECT_EQ(network_.done_.erase(id), 1u); }

   private:
    FakeNetwork& network_;
    const int rank_;
    std::map<Id, absl::Span<const std::byte>> sent_;  // and not seen to end
  };

  PointToPoint::Id NewId() {
    done_[next_] = false;
    return next_++;
  }

  std::mt19937 random_;
  std::map<std::tuple<int, int, int>, Channel> channels_;  // from, to, tag
  std::map<PointToPoint::Id, bool> done_;
  PointToPoint::Id next_ = 0;
  absl::Status status_;
};

absl::Span<std::byte> BytesOf(std::vector<int32_t>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * 4};
}

// Value `i` of a rank in buffer `number`; their sum over all ranks tells which
// ranks were added, and how often.
int32_t ValueOf(int rank, int number, size_t i) {
  return static_cast<int32_t>((i * 31 + static_cast<size_t>(number)) % 1000) +
         (1 << (10 + 2 * rank));
}

// Advances the ranks' objects in any order until all are done.
template <typename Running>
void RunToTheEnd(FakeNetwork& network, std::mt19937& random,
                 std::vector<std::unique_ptr<Running>>& ranks) {
  std::vector<bool> done(ranks.size());
  for (size_t left = ranks.size(); left > 0;) {
    ASSERT_FALSE(::testing::Test::HasFailure());
    const size_t rank = random() % ranks.size();
    if (random() % 2 == 0) network.Deliver();
    if (done[rank]) continue;
    const auto headway = ranks[rank]->Advance();
    ASSERT_TRUE(headway.ok());
    if (*headway != Headway::kDone) continue;
    done[rank] = true;
    --left;
  }
  EXPECT_EQ(network.under_way(), 0u);
}

struct RingCase {
  int ranks;
  size_t elements;
  size_t window;
};

class RingCollectiveTest : public ::testing::TestWithParam<RingCase> {};

// In segments of 16 elements.
constexpr SegmentOptions kSegments = {.segment_bytes = 64};

TEST_P(RingCollectiveTest, SumsOnAllRanksInAnyOrderOfEvents) {
  const auto [ranks, elements, window] = GetParam();
  SegmentOptions options = kSegments;
  options.window = window;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    FakeNetwork network(seed);
    std::mt19937 random(seed);
    std::vector<std::vector<int32_t>> values(static_cast<size_t>(ranks));
    std::vector<std::unique_ptr<PointToPoint>> ports;
    std::vector<std::unique_ptr<RingCollective>> rings;
    for (int rank = 0; rank < ranks; ++rank) {
      for (size_t i = 0; i < elements; ++i) {
        values[static_cast<size_t>(rank)].push_back(ValueOf(rank, 0, i));
      }
      ports.push_back(network.PortOf(rank));
      rings.push_back(std::make_unique<RingCollective>(*ports.back(), rank,
                                                       ranks, options));
      rings.back()->BeginAllreduce(/*tag=*/7,
                                   BytesOf(values[static_cast<size_t>(rank)]),
                                   DataType::kInt32, ReduceOp::kSum);
    }
    RunToTheEnd(network, random, rings);
    for (size_t i = 0; i < elements; ++i) {
      int32_t sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += ValueOf(rank, 0, i);
      for (const std::vector<int32_t>& of_rank : values) {
        ASSERT_EQ(of_rank[i], sum) << "element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, RingCollectiveTest,
    ::testing::Values(RingCase{2, 1, 8}, RingCase{2, 500, 1},
                      RingCase{2, 513, 8}, RingCase{3, 7, 2},
                      RingCase{3, 1000, 3}, RingCase{4, 64, 8},
                      RingCase{5, 37, 2}, RingCase{7, 900, 4},
                      RingCase{8, 16, 8}, RingCase{3, 0, 8}),
    [](const auto& info) {
      return absl::StrCat("Ranks", info.param.ranks, "Elements",
                          info.param.elements, "Window", info.param.window);
    });

// In bytes.
const std::vector<size_t> kUnevenParts = {0, 700, 36};

TEST(RingCollectiveTest, ReducesUnevenPartsAndGathersThem) {
  constexpr size_t kRanks = 3, kElements = 184;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    FakeNetwork network(seed);
    std::mt19937 random(seed);
    std::vector<std::vector<int32_t>> values(kRanks);
    std::vector<std::unique_ptr<PointToPoint>> ports;
    std::vector<std::unique_ptr<RingCollective>> rings;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      for (size_t i = 0; i < kElements; ++i) {
        values[rank].push_back(ValueOf(static_cast<int>(rank), 0, i));
      }
      ports.push_back(network.PortOf(static_cast<int>(rank)));
      rings.push_back(std::make_unique<RingCollective>(
          *ports.back(), static_cast<int>(rank), kRanks, kSegments));
      rings.back()->BeginReduceScatter(7, BytesOf(values[rank]), kUnevenParts,
                                       DataType::kInt32, ReduceOp::kSum);
    }
    RunToTheEnd(network, random, rings);
    const auto expect_sum = [&](size_t rank, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        ASSERT_EQ(values[rank][i],
                  ValueOf(0, 0, i) + ValueOf(1, 0, i) + ValueOf(2, 0, i))
            << "rank " << rank << " element " << i;
      }
    };
    expect_sum(1, 0, 175);
    expect_sum(2, 175, kElements);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      rings[rank]->BeginAllgather(8, BytesOf(values[rank]), kUnevenParts);
    }
    RunToTheEnd(network, random, rings);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      expect_sum(rank, 0, kElements);
    }
  }
}

TEST(SegmentedExchangeTest, SwapsBytesOfDifferentSizes) {
  for (const size_t other : {0, 1, 64, 1000}) {
    FakeNetwork network(1);
    std::mt19937 random(1);
    std::vector<std::vector<int32_t>> sent = {std::vector<int32_t>(500, 1),
                                              std::vector<int32_t>(other, 2)};
    std::vector<std::vector<int32_t>> received = {std::vector<int32_t>(other),
                                                  std::vector<int32_t>(500)};
    std::vector<std::unique_ptr<PointToPoint>> ports;
    std::vector<std::unique_ptr<SegmentedExchange>> exchanges;
    for (int rank = 0; rank < 2; ++rank) {
      const auto own = static_cast<size_t>(rank);
      ports.push_back(network.PortOf(rank));
      exchanges.push_back(
          std::make_unique<SegmentedExchange>(*ports.back(), kSegments));
      exchanges.back()->Begin(7, 1 - rank, BytesOf(sent[own]), 1 - rank,
                              BytesOf(received[own]));
    }
    RunToTheEnd(network, random, exchanges);
    EXPECT_EQ(received[0], sent[1]);
    EXPECT_EQ(received[1], sent[0]);
  }
}

// Ranks begin the next ones as soon as they may, and end them in order.
TEST(AllreduceQueueTest, ReducesSeveralBuffersAtOnce) {
  constexpr int kRanks = 3, kBuffers = 90;
  constexpr size_t kElements = 200;
  FakeNetwork network(1);
  std::mt19937 random(1);
  std::vector<std::unique_ptr<PointToPoint>> ports;
  std::vector<std::unique_ptr<AllreduceQueue>> queues;
  std::vector<std::vector<std::vector<int32_t>>> values(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    queues.push_back(std::make_unique<AllreduceQueue>(
        *ports.emplace_back(network.PortOf(rank)), rank, kRanks,
        /*first_tag=*/100, kSegments));
    for (int number = 0; number < kBuffers; ++number) {
      auto& buffer = values[static_cast<size_t>(rank)].emplace_back();
      for (size_t i = 0; i < kElements; ++i) {
        buffer.push_back(ValueOf(rank, number, i));
      }
    }
  }
  size_t most = 0;
  std::vector<size_t> begun(kRanks), ended(kRanks);
  while (ended != std::vector<size_t>(kRanks, kBuffers)) {
    ASSERT_FALSE(HasFailure());
    const size_t rank = random() % kRanks;
    network.Deliver();
    AllreduceQueue& queue = *queues[rank];
    if (begun[rank] < kBuffers && queue.under_way() < AllreduceQueue::kAtOnce &&
        random() % 2 == 0) {
      queue.Begin(BytesOf(values[rank][begun[rank]++]), DataType::kInt32,
                  ReduceOp::kSum);
    }
    most = std::max(most, queue.under_way());
    if (queue.under_way() == 0) continue;
    const auto headway = queue.Advance();
    ASSERT_TRUE(headway.ok());
    if (*headway != Headway::kDone) continue;
    const auto number = static_cast<int>(ended[rank]);
    for (size_t i = 0; i < kElements; ++i) {
      int32_t sum = 0;
      for (int other = 0; other < kRanks; ++other) {
        sum += ValueOf(other, number, i);
      }
      ASSERT_EQ(values[rank][ended[rank]][i], sum);
    }
    ++ended[rank];
  }
  EXPECT_EQ(most, AllreduceQueue::kAtOnce);
}

TEST(AllreduceQueueTest, ABrokenTransportEndsItAndLeavesNoMessage) {
  FakeNetwork network(1);
  std::vector<int32_t> values(1000, 1);
  const std::unique_ptr<PointToPoint> port = network.PortOf(0);
  {
    AllreduceQueue queue(*port, 0, 2, /*first_tag=*/100, kSegments);
    queue.Begin(BytesOf(values), DataType::kInt32, ReduceOp::kSum);
    ASSERT_TRUE(queue.Advance().ok());
    EXPECT_GT(network.under_way(), 0u);
    network.Break();
    EXPECT_EQ(queue.Advance().status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(network.under_way(), 0u);
}

}  // namespace
}  // namespace hvdlite::collective
