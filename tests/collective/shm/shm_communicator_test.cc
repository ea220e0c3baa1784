#include "collective/shm/shm_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/floats.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/collective/shm/shm_ranks.h"
#include "tests/testing/conformance/allreduce_buckets.h"
#include "tests/testing/conformance/communicator_conformance.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::AllreduceTable;
using collective::CreateShmCommunicator;
using collective::FusionBuffer;

using Body = ShmRankBody;

ConformanceBackend ShmBackend(std::string name, std::vector<int> node_of_rank) {
  return {.name = std::move(name), .run_ranks = [=](const Body& body) {
            RunOnNodes(node_of_rank, kMixedTable, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Shm, CommunicatorConformance,
    ::testing::Values(ShmBackend("OneNodeOf2", {0, 0}),
                      ShmBackend("OneNodeOf3", {0, 0, 0}),
                      ShmBackend("OneNodeOf4", {0, 0, 0, 0}),
                      ShmBackend("OneNodeOf8", {0, 0, 0, 0, 0, 0, 0, 0}),
                      ShmBackend("TwoNodesOf2", {0, 0, 1, 1}),
                      ShmBackend("ThreeNodesOf2", {0, 0, 1, 1, 2, 2}),
                      ShmBackend("TwoNodesOf3", {0, 0, 0, 1, 1, 1}),
                      ShmBackend("NodesOf2And1", {0, 0, 1}),
                      ShmBackend("NodesOf3And1", {0, 0, 0, 1}),
                      ShmBackend("NodesOf2And1And1", {0, 0, 1, 2}),
                      ShmBackend("OneNodeAroundAnother", {0, 1, 1, 0}),
                      ShmBackend("Unequal", {0, 1, 0, 2, 0, 1})),
    BackendName);

// Ranks 0, 2, 4 share one node, ranks 1, 3, 5 another.
TEST(ShmCommunicatorTest, SubgroupsOfAlternatingRanksAgreeOnTheAlgorithm) {
  auto flat = collective::CreateInProcessWorld(6);
  RunRanks(6, [&](int rank) {
    auto communicator = CreateShmCommunicator(
        flat[rank], {0, 1, 0, 1, 0, 1}, *AllreduceTable::Parse(kMixedTable));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    const std::vector<std::vector<int>> groups = {
        {0, 1, 3, 4}, {0, 1, 2, 3}, {1, 2, 3, 4}};
    int tag = 0;
    for (const std::vector<int>& members : groups) {
      ++tag;
      if (!std::count(members.begin(), members.end(), rank)) continue;
      auto group = (*communicator)->CreateSubgroup(members, tag);
      ASSERT_TRUE(group.ok()) << group.status();
      CheckRandomOperations(**group, /*seed=*/tag, /*count=*/20);
      EXPECT_TRUE((*group)->Barrier().ok());
    }
    EXPECT_TRUE((*communicator)->Barrier().ok());
  });
}

// The sum depends on the order: (1e8 + 1) - 1e8 is 0 in float32.
TEST(ShmCommunicatorTest, ElementsAreAddedInRankOrderAtAnyPosition) {
  for (const char* table : {kMixedTable, kTinyChunks}) {
    for (const size_t count : {1, 20, 100, 1000, 30000}) {
      RunOnNodes({0, 0, 0, 0}, table, [&](Communicator& communicator) {
        const float of_rank[] = {1e8f, 1.0f, -1e8f, 3.0f};
        std::vector<float> values(count, of_rank[communicator.rank()]);
        ExpectOk(SumFloats(communicator, absl::MakeSpan(values)));
        EXPECT_EQ(values, std::vector<float>(count, 3.0f));
      });
    }
  }
}

TEST(ShmCommunicatorTest, RandomBucketsMatchTheReference) {
  constexpr uint32_t kBuckets = UnlessSanitized(20, 10);
  uint32_t seed = 0;
  std::vector<std::vector<int>> layouts = {
      {0, 0}, {0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 1, 1, 1}};
  layouts.insert(layouts.end(), kAwkwardNodes.begin(), kAwkwardNodes.end());
  for (const std::vector<int>& layout : layouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    for (const char* table : {kMixedTable, kTinyChunks}) {
      RunOnNodes(layout, table, [&](Communicator& communicator) {
        FusionBuffer buffer(64);
        for (uint32_t i = seed; i < seed + kBuckets; ++i) {
          SCOPED_TRACE(::testing::Message() << "seed " << i);
          CheckAllreduceBucket(communicator, buffer, RandomAllreduceBucket(i));
        }
      });
      seed += kBuckets;
    }
  }
}

// Sums in each node in rank order, then over the nodes in the order of their
// lowest ranks.
float SumByNodes(const std::vector<int>& node_of_rank,
                 const std::vector<float>& of_rank) {
  const int num_nodes =
      1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
  float total = 0;
  for (int node = 0; node < num_nodes; ++node) {  // by lowest rank
    float sum = 0;
    bool first = true;
    for (size_t rank = 0; rank < of_rank.size(); ++rank) {
      if (node_of_rank[rank] != node) continue;
      sum = first ? of_rank[rank] : sum + of_rank[rank];
      first = false;
    }
    total = node == 0 ? sum : total + sum;
  }
  return total;
}

TEST(ShmCommunicatorTest, OneOrderOfSumsHoldsForAnyNodesAndAnyBucket) {
  std::vector<std::vector<int>> layouts = kAwkwardNodes;
  layouts.push_back({0, 0, 1, 1, 2, 2});
  layouts.push_back({0, 1, 2, 0, 1, 2, 2, 1, 0});
  for (const std::vector<int>& layout : layouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    const int size = static_cast<int>(layout.size());
    const auto value = [](size_t index, int rank) {
      return std::sin(static_cast<float>(index % 977) + 1.0f) *
             std::pow(10.0f, static_cast<float>((index + rank * 5) % 7));
    };
    constexpr size_t kMost = 20000;
    std::vector<std::vector<float>> values_of_rank(size);
    std::vector<float> sums;
    for (size_t i = 0; i < kMost; ++i) {
      std::vector<float> of_rank;
      for (int rank = 0; rank < size; ++rank) {
        of_rank.push_back(value(i, rank));
        values_of_rank[rank].push_back(of_rank.back());
      }
      sums.push_back(SumByNodes(layout, of_rank));
    }
    for (const char* table : {kMixedTable, kTinyChunks, ""}) {
      auto flat = collective::CreateInProcessWorld(size);
      RunRanks(size, [&](int rank) {
        std::unique_ptr<Communicator> in_order =
            collective::CreateRankOrderCommunicator(std::move(flat[rank]));
        auto communicator = CreateShmCommunicator(
            in_order, layout, AllreduceTable::Parse(table)->WithOneOrder());
        ASSERT_TRUE(communicator.ok()) << communicator.status();
        for (const size_t count :
             {size_t{1}, size_t{20}, size_t{100}, size_t{1000}, kMost}) {
          std::vector<float> values(values_of_rank[rank].begin(),
                                    values_of_rank[rank].begin() + count);
          const std::vector<float> expected(sums.begin(), sums.begin() + count);
          ExpectOk(SumFloats(**communicator, absl::MakeSpan(values)));
          EXPECT_TRUE(values == expected) << count << " on rank " << rank;
        }
        EXPECT_TRUE((*communicator)->Barrier().ok());
      });
    }
  }
}

// The result for `count` floats of `value`, and the algorithm.
std::pair<std::vector<float>, std::string> ReduceFloats(
    Communicator& communicator, size_t count, float value,
    const collective::Reduction& reduction) {
  RankResources own(64);
  std::vector<float> values(count, value);
  const absl::Span<std::byte> bytes = BytesOf(absl::MakeSpan(values));
  std::string algorithm;
  ExpectOk(
      collective::FusedAllreduce(own.With(communicator), reduction,
                                 {collective::FusedTensor{bytes, bytes}},
                                 {.on_algorithm = [&](absl::string_view name) {
                                   algorithm = std::string(name);
                                 }}));
  return {values, algorithm};
}

TEST(ShmCommunicatorTest, CompressionAppliesOnlyBetweenNodes) {
  const auto sum = [](Communicator& communicator) {
    return ReduceFloats(communicator, 5000, 1.0f + 1e-6f,
                        {.compression = collective::Compression::kBFloat16})
        .first;
  };
  RunOnNodes({0, 0}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(sum(communicator), std::vector<float>(5000, 2 * (1.0f + 1e-6f)));
  });
  RunOnNodes({0, 0, 1, 1}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(sum(communicator), std::vector<float>(5000, 4.0f));
  });
}

TEST(ShmCommunicatorTest, CompressedAveragesBetweenNodesStayInRange) {
  for (const std::vector<int>& layout :
       {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3},
        std::vector<int>{0, 1, 1, 0}, std::vector<int>{0, 0, 0, 1}}) {
    RunOnNodes(layout, kMixedTable, [&](Communicator& communicator) {
      for (const size_t count : {5, 5000}) {  // flat; hierarchical
        const auto average =
            ReduceFloats(communicator, count, 20480.0f,
                         {.postscale = 1.0 / communicator.size(),
                          .compression = collective::Compression::kFloat16});
        EXPECT_EQ(average.first, std::vector<float>(count, 20480.0f));
      }
    });
  }
}

TEST(ShmCommunicatorTest, NodesWithOneRankEachStayFlat) {
  for (const std::vector<int>& node_of_rank :
       {std::vector<int>{0}, std::vector<int>{0, 1, 2}}) {
    const int size = static_cast<int>(node_of_rank.size());
    auto flat = collective::CreateInProcessWorld(size);
    RunRanks(size, [&](int rank) {
      const auto communicator = CreateShmCommunicator(
          flat[rank], node_of_rank, AllreduceTable::BuiltIn());
      EXPECT_EQ(communicator.status().code(),
                absl::StatusCode::kFailedPrecondition);
      ASSERT_NE(flat[rank], nullptr);
      EXPECT_TRUE(flat[rank]->Barrier().ok());
    });
  }
}

TEST(ShmCommunicatorTest, ReportsHowABucketIsReduced) {
  const auto expect = [](Communicator& communicator, size_t count,
                         const std::string& algorithm) {
    EXPECT_EQ(ReduceFloats(communicator, count, 1, {}).second, algorithm);
  };
  RunOnNodes({0, 0}, kMixedTable, [&](Communicator& communicator) {
    expect(communicator, 25, "shared memory, one-shot");
    expect(communicator, 2500, "shared memory, two-shot");
  });
  std::vector<std::vector<int>> layouts = kAwkwardNodes;
  layouts.push_back({0, 0, 1, 1});
  for (const std::vector<int>& layout : layouts) {
    RunOnNodes(layout, kMixedTable, [&](Communicator& communicator) {
      expect(communicator, 25, "flat");
      expect(communicator, 2500, "shared memory, hierarchical");
    });
  }
}

// Calls a function whenever progress is made.
class ProgressTeller final : public ForwardingCommunicator {
 public:
  ProgressTeller(std::unique_ptr<Communicator> base,
                 std::function<void()> on_progress)
      : ForwardingCommunicator(std::move(base)),
        on_progress_(std::move(on_progress)) {}
  void MakeProgress() override { on_progress_(); }

 private:
  const std::function<void()> on_progress_;
};

// Progress of the library below: a rank may wait for messages that it has
// queued here, while this rank waits for that rank.
TEST(ShmCommunicatorTest, WaitForRanksOfTheNodeMakesProgress) {
  auto flat = collective::CreateInProcessWorld(2);
  std::binary_semaphore progress(0);
  RunRanks(2, [&](int rank) {
    std::unique_ptr<Communicator> base = std::make_unique<ProgressTeller>(
        std::move(flat[rank]), [&, rank, told = false]() mutable {
          if (rank == 0 && !std::exchange(told, true)) progress.release();
        });
    auto communicator = CreateShmCommunicator(
        base, {0, 0}, *AllreduceTable::Parse(kMixedTable));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    float value = 1;
    const auto add = [&] {
      ExpectOk(SumFloats(**communicator, absl::MakeSpan(&value, 1)));
    };
    add();  // creates the node's shared memory
    if (rank == 1) progress.acquire();
    add();
    EXPECT_EQ(value, 4);
    EXPECT_TRUE((*communicator)->Barrier().ok());
  });
}

TEST(ShmCommunicatorTest, ErrorFromWhileWaitingEndsTheBucket) {
  const Body body = [](Communicator& communicator) {
    RankResources own(64);
    Bytes bytes(4000);
    ExpectOk(communicator.Allreduce(absl::MakeSpan(bytes), DataType::kUint8,
                                    ReduceOp::kSum));
    if (communicator.rank() == 1) return;  // makes no further call
    int served = 0;
    const absl::Status status = collective::FusedAllreduce(
        own.With(communicator), {}, {InPlace(bytes)}, {.while_waiting = [&] {
          return ++served < 3 ? absl::OkStatus()
                              : absl::UnavailableError("rank 1 has died");
        }});
    EXPECT_EQ(status, absl::UnavailableError("rank 1 has died"));
    EXPECT_EQ(communicator.Barrier(), status) << "it stays broken";
  };
  RunOnNodes({0, 0}, kMixedTable, body, /*all_meet_in_the_end=*/false);
}

}  // namespace
}  // namespace hvdlite::testing
