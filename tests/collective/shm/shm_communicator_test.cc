#include "collective/shm/shm_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/shm/resident_tensors.h"
#include "tests/testing/conformance/allreduce_batches.h"
#include "tests/testing/conformance/communicator_conformance.h"
#include "tests/testing/fakes/machine_files.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::AllreduceTable;
using collective::CreateShmCommunicator;
using collective::FusionBuffer;

using Body = std::function<void(Communicator&)>;

// Every algorithm has its share of the sizes.
constexpr char kMixedTable[] = R"(
1   2-  100   at-once     8K  cached
1   2-  1K    slices      64  cached
1   2-  20K   slices      4K  cached
1   2-  100K  slices      16K streaming
1   2-  inf   slices      64K streaming
2-  2-  100   flat        0   cached
2-  2-  2K    two-levels  128 cached
2-  2-  inf   two-levels  64K streaming
)";
// Many rounds through few slots.
constexpr char kTinyChunks[] = R"(
1   2-  inf   slices      64 cached
2-  2-  inf   two-levels  64 streaming
)";

// Runs the body on ranks that are threads, on the given nodes.
void RunOnLayout(const std::vector<int>& node_of_rank, const char* table,
                 const Body& body, bool all_meet_in_the_end = true) {
  const int size = static_cast<int>(node_of_rank.size());
  auto flat = collective::CreateInProcessWorld(size);
  const AllreduceTable parsed = *AllreduceTable::Parse(table);
  RunRanks(size, [&](int rank) {
    auto communicator = CreateShmCommunicator(flat[rank], node_of_rank, parsed);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(**communicator);
    // Nobody leaves while others still need something of it.
    if (all_meet_in_the_end) {
      EXPECT_TRUE((*communicator)->Barrier().ok());
    }
  });
}

// The same on nodes of the given sizes, one after the other.
void RunOnNodes(const std::vector<int>& ranks_of_node, const char* table,
                const Body& body, bool all_meet_in_the_end = true) {
  std::vector<int> node_of_rank;
  for (size_t node = 0; node < ranks_of_node.size(); ++node) {
    node_of_rank.insert(node_of_rank.end(), ranks_of_node[node],
                        static_cast<int>(node));
  }
  RunOnLayout(node_of_rank, table, body, all_meet_in_the_end);
}

// Nodes with different numbers of ranks, or ranks that lie between others'.
const std::vector<std::vector<int>> kAwkwardLayouts = {
    {0, 0, 1},    {0, 0, 0, 1},       {0, 0, 1, 2},      {0, 1, 1},
    {0, 1, 1, 0}, {0, 1, 2, 2, 1, 0}, {0, 1, 0, 2, 0, 1}};

ConformanceBackend LayoutBackend(std::string name,
                                 std::vector<int> node_of_rank) {
  return {.name = std::move(name), .run_ranks = [=](const Body& body) {
            RunOnLayout(node_of_rank, kMixedTable, body);
          }};
}

ConformanceBackend ShmBackend(std::string name,
                              std::vector<int> ranks_of_node) {
  return {.name = std::move(name), .run_ranks = [=](const Body& body) {
            RunOnNodes(ranks_of_node, kMixedTable, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(Shm, CommunicatorConformance,
                         ::testing::Values(ShmBackend("OneNodeOf2", {2}),
                                           ShmBackend("OneNodeOf3", {3}),
                                           ShmBackend("OneNodeOf4", {4}),
                                           ShmBackend("OneNodeOf8", {8}),
                                           ShmBackend("TwoNodesOf2", {2, 2}),
                                           ShmBackend("ThreeNodesOf2",
                                                      {2, 2, 2}),
                                           ShmBackend("TwoNodesOf3", {3, 3})),
                         BackendName);

INSTANTIATE_TEST_SUITE_P(
    ShmAwkward, CommunicatorConformance,
    ::testing::Values(LayoutBackend("NodesOf2And1", {0, 0, 1}),
                      LayoutBackend("NodesOf3And1", {0, 0, 0, 1}),
                      LayoutBackend("NodesOf2And1And1", {0, 0, 1, 2}),
                      LayoutBackend("OneNodeAroundAnother", {0, 1, 1, 0}),
                      LayoutBackend("Unequal", {0, 1, 0, 2, 0, 1})),
    BackendName);

class ShmNodes : public ::testing::TestWithParam<std::vector<int>> {};

TEST_P(ShmNodes, RandomBatchesMatchTheReference) {
  for (const char* table : {kMixedTable, kTinyChunks}) {
    RunOnNodes(GetParam(), table, [](Communicator& communicator) {
      FusionBuffer buffer(64);
      for (uint32_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        CheckAllreduceBatch(communicator, buffer, RandomAllreduceBatch(seed));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Shm, ShmNodes,
                         ::testing::Values(std::vector<int>{2},
                                           std::vector<int>{3},
                                           std::vector<int>{5},
                                           std::vector<int>{2, 2},
                                           std::vector<int>{3, 3}));

// Ranks 0, 2, 4 and 1, 3, 5 share a node each.
TEST(ShmCommunicatorTest, SubgroupsOfAlternatingRanksAgreeOnHowTheyReduce) {
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
TEST(ShmCommunicatorTest, ElementsAreAddedInRankOrderWhereverTheyAre) {
  for (const char* table : {kMixedTable, kTinyChunks}) {
    for (const size_t count : {1, 20, 100, 1000, 30000}) {
      RunOnNodes({4}, table, [&](Communicator& communicator) {
        const float of_rank[] = {1e8f, 1.0f, -1e8f, 3.0f};
        std::vector<float> values(count, of_rank[communicator.rank()]);
        ASSERT_TRUE(communicator
                        .Allreduce(absl::MakeSpan(reinterpret_cast<std::byte*>(
                                                      values.data()),
                                                  4 * count),
                                   DataType::kFloat32, ReduceOp::kSum)
                        .ok());
        EXPECT_EQ(values, std::vector<float>(count, 3.0f));
      });
    }
  }
}

TEST(ShmCommunicatorTest, RandomBatchesMatchTheReferenceOnAwkwardNodes) {
  for (const std::vector<int>& layout : kAwkwardLayouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    for (const char* table : {kMixedTable, kTinyChunks}) {
      RunOnLayout(layout, table, [](Communicator& communicator) {
        FusionBuffer buffer(64);
        for (uint32_t seed = 0; seed < 40; ++seed) {
          SCOPED_TRACE(::testing::Message() << "seed " << seed);
          CheckAllreduceBatch(communicator, buffer, RandomAllreduceBatch(seed));
        }
      });
    }
  }
}

// In each node in the order of its ranks, then over the nodes in the order of
// their lowest ranks.
float SumByNodes(const std::vector<int>& node_of_rank,
                 const std::vector<float>& of_rank) {
  const int num_nodes =
      1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
  float total = 0;
  for (int node = 0; node < num_nodes; ++node) {  // counted by lowest ranks
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

TEST(ShmCommunicatorTest, OneOrderOfSumsHoldsOnAnyNodesAndInAnyBatch) {
  std::vector<std::vector<int>> layouts = kAwkwardLayouts;
  layouts.push_back({0, 0, 1, 1, 2, 2});
  layouts.push_back({0, 1, 2, 0, 1, 2, 2, 1, 0});
  for (const std::vector<int>& layout : layouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    const int size = static_cast<int>(layout.size());
    const auto value = [](size_t index, int rank) {
      return std::sin(static_cast<float>(index % 977) + 1.0f) *
             std::pow(10.0f, static_cast<float>((index + rank * 5) % 7));
    };
    for (const char* table : {kMixedTable, kTinyChunks, ""}) {
      auto flat = collective::CreateInProcessWorld(size);
      RunRanks(size, [&](int rank) {
        std::unique_ptr<Communicator> in_order =
            collective::CreateRankOrderCommunicator(std::move(flat[rank]));
        auto communicator = CreateShmCommunicator(
            in_order, layout, AllreduceTable::Parse(table)->WithOneOrder());
        ASSERT_TRUE(communicator.ok()) << communicator.status();
        for (const size_t count : {1, 20, 100, 1000, 20000}) {
          std::vector<float> values;
          std::vector<float> expected;
          for (size_t i = 0; i < count; ++i) {
            std::vector<float> of_rank;
            for (int r = 0; r < size; ++r) of_rank.push_back(value(i, r));
            values.push_back(of_rank[rank]);
            expected.push_back(SumByNodes(layout, of_rank));
          }
          ASSERT_TRUE(
              (*communicator)
                  ->Allreduce(absl::MakeSpan(
                                  reinterpret_cast<std::byte*>(values.data()),
                                  4 * count),
                              DataType::kFloat32, ReduceOp::kSum)
                  .ok());
          EXPECT_TRUE(values == expected) << count << " on rank " << rank;
        }
        EXPECT_TRUE((*communicator)->Barrier().ok());
      });
    }
  }
}

TEST(ShmCommunicatorTest, CompressionIsForWhatLeavesTheNode) {
  const auto sum = [](Communicator& communicator) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    std::vector<float> values(5000, 1.0f + 1e-6f);
    const auto bytes = absl::MakeSpan(
        reinterpret_cast<std::byte*>(values.data()), 4 * values.size());
    EXPECT_TRUE(collective::FusedAllreduce(
                    {communicator, buffer, clock},
                    {.compression = collective::Compression::kBFloat16},
                    {collective::FusedTensor{bytes, bytes}}, {})
                    .ok());
    return values;
  };
  RunOnNodes({2}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(sum(communicator), std::vector<float>(5000, 2 * (1.0f + 1e-6f)));
  });
  RunOnNodes({2, 2}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(sum(communicator), std::vector<float>(5000, 4.0f));
  });
}

TEST(ShmCommunicatorTest, CompressedAveragesOverNodesStayInRange) {
  const auto average = [](Communicator& communicator, size_t count) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    std::vector<float> values(count, 20480.0f);
    const auto bytes = absl::MakeSpan(
        reinterpret_cast<std::byte*>(values.data()), 4 * values.size());
    EXPECT_TRUE(collective::FusedAllreduce(
                    {communicator, buffer, clock},
                    {.postscale = 1.0 / communicator.size(),
                     .compression = collective::Compression::kFloat16},
                    {collective::FusedTensor{bytes, bytes}}, {})
                    .ok());
    return values;
  };
  for (const std::vector<int>& layout :
       {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3},
        std::vector<int>{0, 1, 1, 0}, std::vector<int>{0, 0, 0, 1}}) {
    RunOnLayout(layout, kMixedTable, [&](Communicator& communicator) {
      for (const size_t count : {5, 5000}) {  // flat; in two levels
        EXPECT_EQ(average(communicator, count),
                  std::vector<float>(count, 20480.0f));
      }
    });
  }
}

TEST(ShmCommunicatorTest, NodesOfOneRankEachStayFlat) {
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

TEST(ShmCommunicatorTest, ResidentTensorsAreReducedWithoutPacking) {
  for (const int size : {2, 3, 4}) {
    RunOnNodes({size}, kMixedTable, [](Communicator& communicator) {
      Resident resident = MakeResident(communicator, kResidentCounts);
      for (int step = 0; step < 10; ++step) {
        Fill(resident, communicator.rank());
        std::vector<collective::FusionPhase> phases;
        ASSERT_TRUE(Average(communicator, resident.fused, &phases).ok());
        EXPECT_EQ(CountWrong(resident, communicator.size()), 0)
            << "step " << step;
        // The first time the ranks attach one another's memory.
        EXPECT_EQ(Packs(phases), step == 0) << "step " << step;
      }
    });
  }
}

TEST(ShmCommunicatorTest, TensorsInSharedMemoryArePackedAcrossNodes) {
  for (const std::vector<int>& layout : kAwkwardLayouts) {
    RunOnLayout(layout, kMixedTable, [](Communicator& communicator) {
      Resident resident = MakeResident(communicator, {1024, 4, 70000});
      for (int step = 0; step < 3; ++step) {
        for (const absl::Span<float> tensor : resident.tensors) {
          std::fill(tensor.begin(), tensor.end(),
                    static_cast<float>(communicator.rank() + 1));
        }
        std::vector<collective::FusionPhase> phases;
        ASSERT_TRUE(Average(communicator, resident.fused, &phases).ok());
        EXPECT_TRUE(Packs(phases));
        const float expected = static_cast<float>(communicator.size() + 1) / 2;
        for (const absl::Span<float> tensor : resident.tensors) {
          for (const float element : tensor) {
            ASSERT_FLOAT_EQ(element, expected);
          }
        }
      }
    });
  }
}

TEST(ShmCommunicatorTest, OneRankWhoseTensorIsElsewhereMakesAllPack) {
  RunOnNodes({3}, kMixedTable, [](Communicator& communicator) {
    Resident resident = MakeResident(communicator, kResidentCounts);
    std::vector<float> elsewhere(resident.tensors[2].size());
    for (int step = 0; step < 6; ++step) {
      Fill(resident, communicator.rank());
      std::vector<collective::FusedTensor> tensors = resident.fused;
      if (step >= 2 && communicator.rank() == 1) {
        const auto bytes =
            absl::MakeSpan(reinterpret_cast<std::byte*>(elsewhere.data()),
                           4 * elsewhere.size());
        std::copy(tensors[2].input.begin(), tensors[2].input.end(),
                  bytes.begin());
        // Once at another place, once from one place to another.
        tensors[2] = step % 2 == 0
                         ? collective::FusedTensor{bytes, bytes}
                         : collective::FusedTensor{bytes, tensors[2].output};
      }
      std::vector<collective::FusionPhase> phases;
      ASSERT_TRUE(Average(communicator, tensors, &phases).ok());
      if (step >= 2 && step % 2 == 0 && communicator.rank() == 1) {
        std::copy(elsewhere.begin(), elsewhere.end(),
                  resident.tensors[2].begin());
      }
      EXPECT_EQ(CountWrong(resident, 3), 0) << "step " << step;
      EXPECT_EQ(Packs(phases), step != 1) << "step " << step;
    }
  });
}

TEST(ShmCommunicatorTest, TensorsAtDifferentPlacesOfTheMemoryArePacked) {
  RunOnNodes({2}, kMixedTable, [](Communicator& communicator) {
    // The same sizes, but in another order in memory on rank 1.
    Resident resident = MakeResident(communicator, {4096, 8192, 4096});
    if (communicator.rank() == 1) {
      std::swap(resident.fused[0], resident.fused[2]);
      std::swap(resident.tensors[0], resident.tensors[2]);
    }
    for (int step = 0; step < 3; ++step) {
      Fill(resident, communicator.rank());
      std::vector<collective::FusionPhase> phases;
      ASSERT_TRUE(Average(communicator, resident.fused, &phases).ok());
      EXPECT_EQ(CountWrong(resident, 2), 0);
      EXPECT_TRUE(Packs(phases));
    }
  });
}

TEST(ShmCommunicatorTest, NewMemoryOnOneRankIsAttachedAnew) {
  RunOnNodes({2}, kMixedTable, [](Communicator& communicator) {
    Resident resident = MakeResident(communicator, kResidentCounts);
    for (int step = 0; step < 8; ++step) {
      if (step == 4 && communicator.rank() == 1) {
        resident = Resident();
        resident = MakeResident(communicator, kResidentCounts);
      }
      Fill(resident, communicator.rank());
      std::vector<collective::FusionPhase> phases;
      ASSERT_TRUE(Average(communicator, resident.fused, &phases).ok());
      EXPECT_EQ(CountWrong(resident, 2), 0) << "step " << step;
      EXPECT_EQ(Packs(phases), step == 0 || step == 4) << "step " << step;
    }
  });
}

TEST(ShmCommunicatorTest, MemoryForTensorsOutlivesTheCommunicator) {
  std::vector<collective::TensorMemory> memories(2);
  RunOnNodes({2}, kMixedTable, [&](Communicator& communicator) {
    memories[communicator.rank()] = *communicator.AllocateTensors(10000);
  });
  for (const collective::TensorMemory& memory : memories) {
    ASSERT_GE(memory.bytes.size(), 10000);
    for (const std::byte byte : memory.bytes) ASSERT_EQ(byte, std::byte{0});
    memory.bytes[9999] = std::byte{1};
  }
}

TEST(ShmCommunicatorTest, TellsHowABatchIsReduced) {
  const auto algorithm_of = [](Communicator& communicator, size_t bytes) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    std::vector<std::byte> memory(bytes);
    std::string algorithm;
    EXPECT_TRUE(collective::FusedAllreduce(
                    {communicator, buffer, clock}, {},
                    {collective::FusedTensor{memory, absl::MakeSpan(memory)}},
                    {.on_algorithm =
                         [&](absl::string_view name) {
                           algorithm = std::string(name);
                         }})
                    .ok());
    return algorithm;
  };
  RunOnNodes({2}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(algorithm_of(communicator, 100), "shared memory, at-once");
    EXPECT_EQ(algorithm_of(communicator, 10000), "shared memory, slices");
    Resident resident = MakeResident(communicator, kResidentCounts);
    EXPECT_TRUE(Average(communicator, resident.fused).ok());
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    std::string algorithm;
    EXPECT_TRUE(collective::FusedAllreduce({communicator, buffer, clock}, {},
                                           resident.fused,
                                           {.on_algorithm =
                                                [&](absl::string_view name) {
                                                  algorithm = std::string(name);
                                                }})
                    .ok());
    EXPECT_EQ(algorithm, "shared memory, in place");
  });
  RunOnNodes({2, 2}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_EQ(algorithm_of(communicator, 100), "flat");
    EXPECT_EQ(algorithm_of(communicator, 10000), "shared memory, two-levels");
  });
  for (const std::vector<int>& layout : kAwkwardLayouts) {
    RunOnLayout(layout, kMixedTable, [&](Communicator& communicator) {
      EXPECT_EQ(algorithm_of(communicator, 100), "flat");
      EXPECT_EQ(algorithm_of(communicator, 10000), "shared memory, two-levels");
    });
  }
}

// What the shared memory of this process takes, of all ranks that are threads.
size_t ReservedBytes() {
  size_t bytes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), error).string();
    struct stat status = {};
    if (target.rfind("/memfd:hvdlite", 0) == 0 &&
        stat(entry.path().c_str(), &status) == 0) {
      bytes += static_cast<size_t>(status.st_blocks) * 512;
    }
  }
  return bytes;
}

TEST(ShmCommunicatorTest, MemoryIsReservedWhenABatchFirstWantsIt) {
  constexpr size_t kFew = size_t{1} << 20;
  RunOnNodes({2, 2}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_LT(ReservedBytes(), kFew);
    CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 10);
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_LT(ReservedBytes(), kFew) << "this one is reduced flat";
    std::vector<int> members = {0, 1, 2, 3};
    const auto group = communicator.CreateSubgroup(members, /*tag=*/1);
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_TRUE(communicator.Barrier().ok());
    CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 10'000);
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_GT(ReservedBytes(), 4 * kFew);
    EXPECT_LT(ReservedBytes(), 4 * 9 * kFew) << "the group has not used any";
    EXPECT_TRUE(communicator.Barrier().ok());
  });
}

// On the last rank nothing is left when a batch first wants the memory.
TEST(ShmCommunicatorTest, AllRanksReduceFlatWhereOneCannotReserveItsMemory) {
  for (const std::vector<int>& layout :
       {std::vector<int>{0, 0}, std::vector<int>{0, 0, 1, 1},
        std::vector<int>{0, 1, 1, 0, 0}}) {
    const int size = static_cast<int>(layout.size());
    auto flat = collective::CreateInProcessWorld(size);
    const size_t reserved_before = ReservedBytes();
    RunRanks(size, [&](int rank) {
      const bool is_last = rank == size - 1;
      MachineFiles machine;
      machine.SetAvailable(size_t{1} << 30);
      std::vector<std::string> warnings;
      auto communicator = CreateShmCommunicator(
          flat[rank], layout, *AllreduceTable::Parse(kMixedTable),
          {.file_system_root = machine.root(),
           .warn = [&](absl::string_view text) {
             warnings.emplace_back(text);
           }});
      ASSERT_TRUE(communicator.ok()) << communicator.status();
      if (is_last) {
        machine.Write("/proc/self/cgroup", "0::/job");
        machine.Write("/sys/fs/cgroup/job/memory.max", "100000000");
        machine.Write("/sys/fs/cgroup/job/memory.current", "99999999");
      }
      FusionBuffer buffer(64);
      for (uint32_t seed = 0; seed < 20; ++seed) {
        CheckAllreduceBatch(**communicator, buffer, RandomAllreduceBatch(seed));
      }
      CheckAllreduce(**communicator, DataType::kFloat32, ReduceOp::kSum,
                     10'000);
      Resident resident = MakeResident(**communicator, {1024, 70000});
      for (int step = 0; step < 3; ++step) {
        Fill(resident, rank);
        ASSERT_TRUE(Average(**communicator, resident.fused).ok());
        EXPECT_TRUE((*communicator)->Barrier().ok());
      }
      resident = Resident();
      EXPECT_TRUE((*communicator)->Barrier().ok());
      EXPECT_LT(ReservedBytes(), reserved_before + (size_t{1} << 20))
          << "nobody keeps what it could reserve";
      const std::string reason =
          "rank " + std::to_string(size - 1) + ": " +
          std::to_string(
              std::count(layout.begin(), layout.end(), layout.back())) +
          " ranks want 8388608 bytes of shared memory each, but only 1 bytes";
      if (rank == 0) {
        EXPECT_THAT(warnings,
                    ::testing::ElementsAre(::testing::HasSubstr(reason)));
      } else {
        EXPECT_THAT(warnings, ::testing::IsEmpty());
      }
      EXPECT_TRUE((*communicator)->Barrier().ok());
    });
  }
}

TEST(ShmCommunicatorTest, LackOfMemoryForTheBoardIsAnErrorOnAllRanks) {
  auto flat = collective::CreateInProcessWorld(4);
  RunRanks(4, [&](int rank) {
    MachineFiles machine;
    machine.SetAvailable(rank == 2 ? 0 : size_t{1} << 30);
    const auto communicator = CreateShmCommunicator(
        flat[rank], {0, 0, 1, 1}, AllreduceTable::BuiltIn(),
        {.file_system_root = machine.root()});
    EXPECT_EQ(communicator.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(communicator.status().message()),
                ::testing::HasSubstr("rank 2: 2 ranks want 8192 bytes"));
    ASSERT_NE(flat[rank], nullptr);
    CheckAllreduce(*flat[rank], DataType::kFloat32, ReduceOp::kSum, 100);
  });
}

// What a rank that waits is asked to do can end the wait.
TEST(ShmCommunicatorTest, ErrorOfWhoIsServedEndsABatchThatWaits) {
  const Body body = [](Communicator& communicator) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    std::vector<std::byte> bytes(4000);
    EXPECT_TRUE(
        communicator
            .Allreduce(absl::MakeSpan(bytes), DataType::kUint8, ReduceOp::kSum)
            .ok());
    if (communicator.rank() == 1) return;  // does not come again
    int served = 0;
    const absl::Status status = collective::FusedAllreduce(
        {communicator, buffer, clock}, {},
        {collective::FusedTensor{bytes, absl::MakeSpan(bytes)}},
        {.while_waiting = [&] {
          return ++served < 3 ? absl::OkStatus()
                              : absl::UnavailableError("rank 1 has died");
        }});
    EXPECT_EQ(status, absl::UnavailableError("rank 1 has died"));
    EXPECT_EQ(communicator.Barrier(), status) << "it is broken from now on";
  };
  RunOnNodes({2}, kMixedTable, body, /*all_meet_in_the_end=*/false);
}

}  // namespace
}  // namespace hvdlite::testing
