// The memory that ranks of a node share: tensors in it, when it is reserved,
// and what happens without enough of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "collective/fusion/fusion.h"
#include "collective/shm/shm_communicator.h"
#include "tests/collective/shm/shm_ranks.h"
#include "tests/collective/shm/zero_copy_tensors.h"
#include "tests/testing/conformance/allreduce_buckets.h"
#include "tests/testing/conformance/communicator_checks.h"
#include "tests/testing/fakes/machine_files.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::AllreduceTable;
using collective::CreateShmCommunicator;
using collective::FusionBuffer;

TEST(ShmCommunicatorMemoryTest, ZeroCopyTensorsAreReducedWithoutPacking) {
  for (const int size : {2, 3, 4}) {
    RunOnNodes(
        std::vector<int>(size, 0), kMixedTable, [](Communicator& communicator) {
          ZeroCopyTensors zero_copy =
              MakeZeroCopyTensors(communicator, kZeroCopyCounts);
          for (int step = 0; step < 10; ++step) {
            SCOPED_TRACE(step);
            const Averaged averaged = CheckAverage(communicator, zero_copy);
            // At the first time the ranks attach each other's memory.
            EXPECT_EQ(averaged.packs, step == 0);
            EXPECT_EQ(averaged.algorithm, step == 0
                                              ? "shared memory, two-shot"
                                              : "shared memory, in place");
          }
        });
  }
}

TEST(ShmCommunicatorMemoryTest, TensorsInSharedMemoryArePackedBetweenNodes) {
  for (const std::vector<int>& layout : kAwkwardNodes) {
    RunOnNodes(layout, kMixedTable, [](Communicator& communicator) {
      ZeroCopyTensors zero_copy =
          MakeZeroCopyTensors(communicator, {1024, 4, 70000});
      for (int step = 0; step < 3; ++step) {
        for (const absl::Span<float> tensor : zero_copy.tensors) {
          std::fill(tensor.begin(), tensor.end(),
                    static_cast<float>(communicator.rank() + 1));
        }
        EXPECT_TRUE(Average(communicator, zero_copy.fused).packs);
        const float expected = static_cast<float>(communicator.size() + 1) / 2;
        for (const absl::Span<float> tensor : zero_copy.tensors) {
          for (const float element : tensor) {
            ASSERT_FLOAT_EQ(element, expected);
          }
        }
      }
    });
  }
}

TEST(ShmCommunicatorMemoryTest, AllRanksPackIfOneTensorIsElsewhere) {
  RunOnNodes({0, 0, 0}, kMixedTable, [](Communicator& communicator) {
    ZeroCopyTensors zero_copy =
        MakeZeroCopyTensors(communicator, kZeroCopyCounts);
    std::vector<float> elsewhere(zero_copy.tensors[2].size());
    for (int step = 0; step < 6; ++step) {
      Fill(zero_copy, communicator.rank());
      std::vector<collective::FusedTensor> tensors = zero_copy.fused;
      if (step >= 2 && communicator.rank() == 1) {
        const auto bytes =
            absl::MakeSpan(reinterpret_cast<std::byte*>(elsewhere.data()),
                           4 * elsewhere.size());
        std::copy(tensors[2].input.begin(), tensors[2].input.end(),
                  bytes.begin());
        // In some steps the tensor is at another address, in others the output
        // is.
        tensors[2] = step % 2 == 0
                         ? collective::FusedTensor{bytes, bytes}
                         : collective::FusedTensor{bytes, tensors[2].output};
      }
      EXPECT_EQ(Average(communicator, tensors).packs, step != 1)
          << "step " << step;
      if (step >= 2 && step % 2 == 0 && communicator.rank() == 1) {
        std::copy(elsewhere.begin(), elsewhere.end(),
                  zero_copy.tensors[2].begin());
      }
      EXPECT_EQ(CountWrong(zero_copy, 3), 0) << "step " << step;
    }
  });
}

TEST(ShmCommunicatorMemoryTest, TensorsAtDifferentOffsetsArePacked) {
  RunOnNodes({0, 0}, kMixedTable, [](Communicator& communicator) {
    // The same sizes, but in another order in memory on rank 1.
    ZeroCopyTensors zero_copy =
        MakeZeroCopyTensors(communicator, {4096, 8192, 4096});
    if (communicator.rank() == 1) {
      std::swap(zero_copy.fused[0], zero_copy.fused[2]);
      std::swap(zero_copy.tensors[0], zero_copy.tensors[2]);
    }
    for (int step = 0; step < 3; ++step) {
      EXPECT_TRUE(CheckAverage(communicator, zero_copy).packs);
    }
  });
}

TEST(ShmCommunicatorMemoryTest, NewMemoryOnOneRankIsAttached) {
  RunOnNodes({0, 0}, kMixedTable, [](Communicator& communicator) {
    ZeroCopyTensors zero_copy =
        MakeZeroCopyTensors(communicator, kZeroCopyCounts);
    for (int step = 0; step < 8; ++step) {
      if (step == 4 && communicator.rank() == 1) {
        zero_copy = ZeroCopyTensors();
        zero_copy = MakeZeroCopyTensors(communicator, kZeroCopyCounts);
      }
      EXPECT_EQ(CheckAverage(communicator, zero_copy).packs,
                step == 0 || step == 4)
          << "step " << step;
    }
  });
}

TEST(ShmCommunicatorMemoryTest, MemoryForTensorsOutlivesTheCommunicator) {
  std::vector<collective::TensorMemory> memories(2);
  RunOnNodes({0, 0}, kMixedTable, [&](Communicator& communicator) {
    memories[communicator.rank()] = *communicator.AllocateTensors(10000);
  });
  for (const collective::TensorMemory& memory : memories) {
    ASSERT_GE(memory.bytes.size(), 10000);
    for (const std::byte byte : memory.bytes) ASSERT_EQ(byte, std::byte{0});
    memory.bytes[9999] = std::byte{1};
  }
}

// Shared memory of this process, for all ranks (which are threads).
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

TEST(ShmCommunicatorMemoryTest, MemoryIsReservedByTheFirstBucketThatNeedsIt) {
  constexpr size_t kFew = size_t{1} << 20;
  RunOnNodes({0, 0, 1, 1}, kMixedTable, [&](Communicator& communicator) {
    EXPECT_LT(ReservedBytes(), kFew);
    CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 10);
    EXPECT_TRUE(communicator.Barrier().ok());
    EXPECT_LT(ReservedBytes(), kFew) << "this bucket is reduced flat";
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

// On the last rank no memory is left when a bucket first needs it.
TEST(ShmCommunicatorMemoryTest, AllRanksReduceFlatIfOneCannotReserveMemory) {
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
        CheckAllreduceBucket(**communicator, buffer,
                             RandomAllreduceBucket(seed));
      }
      CheckAllreduce(**communicator, DataType::kFloat32, ReduceOp::kSum,
                     10'000);
      ZeroCopyTensors zero_copy =
          MakeZeroCopyTensors(**communicator, {1024, 70000});
      for (int step = 0; step < 3; ++step) {
        Fill(zero_copy, rank);
        Average(**communicator, zero_copy.fused);
        EXPECT_TRUE((*communicator)->Barrier().ok());
      }
      zero_copy = ZeroCopyTensors();
      EXPECT_TRUE((*communicator)->Barrier().ok());
      EXPECT_LT(ReservedBytes(), reserved_before + (size_t{1} << 20))
          << "all ranks free what they reserved";
      const std::string reason =
          "rank " + std::to_string(size - 1) + ": " +
          std::to_string(
              std::count(layout.begin(), layout.end(), layout.back())) +
          " ranks need 8388608 bytes of shared memory each, but only 1 bytes";
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

TEST(ShmCommunicatorMemoryTest, LackOfMemoryForTheBoardIsAnErrorOnAllRanks) {
  auto flat = collective::CreateInProcessWorld(4);
  RunRanks(4, [&](int rank) {
    MachineFiles machine;
    machine.SetAvailable(rank == 2 ? 0 : size_t{1} << 30);
    const auto communicator = CreateShmCommunicator(
        flat[rank], {0, 0, 1, 1}, AllreduceTable::BuiltIn(),
        {.file_system_root = machine.root()});
    EXPECT_EQ(communicator.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(communicator.status().message()),
                ::testing::HasSubstr("rank 2: 2 ranks need 8192 bytes"));
    ASSERT_NE(flat[rank], nullptr);
    CheckAllreduce(*flat[rank], DataType::kFloat32, ReduceOp::kSum, 100);
  });
}

}  // namespace
}  // namespace hvdlite::testing
