#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/hook_record.h"
#include "tests/collective/fusion/partition_cases.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::Compression;
using collective::FusedAllreduce;
using collective::FusedReduceScatter;
using collective::FusedTensor;
using collective::FusionBuffer;
using collective::PartitionedTensor;
using collective::Reduction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Reduction RandomReduction(uint32_t seed) {
  std::mt19937 random(seed);
  Reduction reduction;
  reduction.dtype = static_cast<DataType>(random() % collective::kNumDataTypes);
  reduction.op =
      OpOrSum(reduction.dtype,
              static_cast<ReduceOp>(random() % collective::kNumReduceOps));
  reduction.compression =
      static_cast<Compression>(random() % collective::kNumCompressions);
  if (random() % 2 == 0) reduction.prescale = 1 / 3.0;
  if (random() % 2 == 0) reduction.postscale = 0.7;
  return reduction;
}

// The tensors of one rank; its parts have as many elements as `counts` says:
// [tensor][rank]. Values differ by rank and need rounding.
struct ReduceScatterBatch {
  ReduceScatterBatch(DataType dtype,
                     const std::vector<std::vector<size_t>>& counts, int me) {
    for (size_t i = 0; i < counts.size(); ++i) {
      const size_t count =
          std::accumulate(counts[i].begin(), counts[i].end(), size_t{0});
      std::vector<double> values(count);
      for (size_t j = 0; j < count; ++j) {
        values[j] = 50 + 50 * std::sin(static_cast<double>(j * 7 + i + me));
      }
      inputs.push_back(Encode(dtype, values));
      partitions.push_back(counts[i]);
      for (size_t& part : partitions.back()) part *= SizeOf(dtype);
      outputs.push_back(Bytes(partitions.back()[me]));
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      tensors.push_back(
          {inputs[i], absl::MakeSpan(outputs[i]), partitions[i], {}});
    }
  }

  // What this rank must get, found by reducing all tensors in place.
  std::vector<Bytes> Expected(Communicator& communicator,
                              const Reduction& reduction) const {
    FusionBuffer buffer(4096);
    const base::FakeClock clock;
    std::vector<Bytes> reduced = inputs;
    std::vector<FusedTensor> whole;
    for (Bytes& bytes : reduced)
      whole.push_back({bytes, absl::MakeSpan(bytes)});
    EXPECT_TRUE(
        FusedAllreduce({communicator, buffer, clock}, reduction, whole, {})
            .ok());
    for (size_t i = 0; i < reduced.size(); ++i) {
      const std::vector<size_t>& parts = partitions[i];
      const auto begin =
          reduced[i].begin() +
          std::accumulate(parts.begin(), parts.begin() + communicator.rank(),
                          std::ptrdiff_t{0});
      reduced[i] = Bytes(begin, begin + parts[communicator.rank()]);
    }
    return reduced;
  }

  std::vector<Bytes> inputs;
  std::vector<std::vector<size_t>> partitions;  // bytes
  std::vector<Bytes> outputs;
  std::vector<PartitionedTensor> tensors;
};

TEST(FusedReduceScatterTest, RandomBatchesGiveTheBitsOfAnAllreduce) {
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t buffer_bytes : {64, 1000, 1 << 16}) {
      RunInProcessRanks(size, [&](Communicator& communicator) {
        FusionBuffer buffer(buffer_bytes);
        const base::FakeClock clock;
        for (uint32_t seed = 0; seed < 40; ++seed) {
          const Reduction reduction = RandomReduction(seed);
          ReduceScatterBatch batch(reduction.dtype, RandomSizes(seed, size),
                                   communicator.rank());
          const absl::Status status = FusedReduceScatter(
              {communicator, buffer, clock}, reduction, batch.tensors, {});
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(batch.outputs == batch.Expected(communicator, reduction))
              << "seed " << seed << ", rank " << communicator.rank() << " of "
              << size << ", buffer of " << buffer_bytes << ", "
              << std::string(NameOf(reduction.dtype)) << " "
              << std::string(NameOf(reduction.op)) << " "
              << std::string(NameOf(reduction.compression));
        }
      });
    }
  }
}

TEST(FusedReduceScatterTest, SumIsScaledBeforeAndAfter) {
  RunInProcessRanks(2, [](Communicator& communicator) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    const int rank = communicator.rank();
    const Bytes input = Encode(DataType::kInt32, {5.0 + rank, 7.0 * rank, -3});
    Bytes output((rank == 0 ? 2 : 1) * 4);
    ASSERT_TRUE(
        FusedReduceScatter(
            {communicator, buffer, clock},
            {.dtype = DataType::kInt32, .prescale = 2, .postscale = 0.25},
            {PartitionedTensor{input, absl::MakeSpan(output), {8, 4}, {}}}, {})
            .ok());
    if (rank == 0) {
      EXPECT_THAT(Decode(DataType::kInt32, output), ElementsAre(5, 3));
    } else {
      EXPECT_THAT(Decode(DataType::kInt32, output), ElementsAre(-3));
    }
  });
}

TEST(FusedReduceScatterTest, PartsAreEqualSharesOfTheBufferInTheWireType) {
  auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    FusionBuffer buffer(448);  // 149 for each: 128, 64 elements
    const base::FakeClock clock;
    HookRecord record;
    const Reduction reduction = {.compression = Compression::kFloat16};
    ReduceScatterBatch batch(reduction.dtype, {{50, 0, 100}, {25, 0, 50}},
                             rank);
    ASSERT_TRUE(FusedReduceScatter({communicator, buffer, clock}, reduction,
                                   batch.tensors, record.Hooks())
                    .ok());
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(128, 0, 128), ElementsAre(22, 0, 128),
                            ElementsAre(0, 0, 44)));
    EXPECT_EQ(record.phases.size(), 9);
    EXPECT_EQ(record.num_pauses, 2);
    EXPECT_EQ(batch.outputs, batch.Expected(communicator, reduction));
  });
}

TEST(FusedReduceScatterTest, NothingIsCommunicatedForNoBytesOrInAWorldOfOne) {
  UnimplementedCommunicator three(0, 3);
  UnimplementedCommunicator one(0, 1);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  HookRecord record;
  ReduceScatterBatch empty(DataType::kFloat32, {{0, 0, 0}, {0, 0, 0}}, 0);
  EXPECT_TRUE(FusedReduceScatter({three, buffer, clock}, {}, empty.tensors,
                                 record.Hooks())
                  .ok());
  ReduceScatterBatch alone(DataType::kFloat32, {{70}, {0}}, 0);
  EXPECT_TRUE(FusedReduceScatter({one, buffer, clock}, {}, alone.tensors,
                                 record.Hooks())
                  .ok());
  EXPECT_EQ(alone.outputs, alone.inputs);
  EXPECT_THAT(record.phases, IsEmpty());
}

TEST(FusedReduceScatterTest, PartitionThatDoesNotFitIsRefused) {
  UnimplementedCommunicator communicator(1, 2);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  Bytes input(20);
  Bytes output(8);
  const auto message = [&](std::vector<size_t> partition) {
    const absl::Status status = FusedReduceScatter(
        {communicator, buffer, clock}, {},
        {PartitionedTensor{input, absl::MakeSpan(output), partition, {}}}, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({20}),
            "tensor 0 of the batch has a partition of its input for 1 ranks, "
            "not for 2");
  EXPECT_EQ(message({10, 10}),
            "tensor 0 of the batch has 10 bytes of input for rank 0, not a "
            "whole number of elements of 4 bytes");
  EXPECT_EQ(message({12, 4}),
            "tensor 0 of the batch has 20 bytes of input, but a partition of "
            "16");
  EXPECT_EQ(message({8, 12}),
            "tensor 0 of the batch has 8 bytes of output, but rank 1 has a "
            "part of 12");
}

}  // namespace
}  // namespace hvdlite::testing
