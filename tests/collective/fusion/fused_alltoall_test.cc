#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/hook_record.h"
#include "tests/collective/fusion/partition_cases.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::FusedAlltoall;
using collective::FusionBuffer;
using collective::FusionPhase;
using collective::PartitionedTensor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// The tensors of one rank of `size`; rank r gives rank s sizes[i][r * size + s]
// bytes of tensor i.
struct AlltoallBatch {
  AlltoallBatch(const std::vector<std::vector<size_t>>& sizes, int me,
                int size) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      Bytes input;
      Bytes output;
      PartitionedTensor tensor;
      for (int other = 0; other < size; ++other) {
        const size_t given = sizes[i][me * size + other];
        const size_t taken = sizes[i][other * size + me];
        tensor.input_bytes.push_back(given);
        tensor.output_bytes.push_back(taken);
        Append(input, PieceBytes(i, me, other, given));
        Append(output, PieceBytes(i, other, me, taken));
      }
      inputs.push_back(input);
      expected.push_back(output);
      outputs.push_back(Bytes(output.size()));
      tensors.push_back(tensor);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      tensors[i].input = inputs[i];
      tensors[i].output = absl::MakeSpan(outputs[i]);
    }
  }

  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<Bytes> expected;
  std::vector<PartitionedTensor> tensors;
};

TEST(FusedAlltoallTest, EveryRankGetsItsPartsOfRandomBatches) {
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t buffer_bytes : {64, 2000, 1 << 16}) {
      RunInProcessRanks(size, [&](Communicator& communicator) {
        FusionBuffer buffer(buffer_bytes);
        const base::FakeClock clock;
        for (uint32_t seed = 0; seed < 25; ++seed) {
          AlltoallBatch batch(RandomSizes(seed, size * size),
                              communicator.rank(), size);
          const absl::Status status =
              FusedAlltoall({communicator, buffer, clock}, batch.tensors, {});
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(batch.outputs == batch.expected)
              << "seed " << seed << ", rank " << communicator.rank() << " of "
              << size << ", buffer of " << buffer_bytes;
        }
      });
    }
  }
}

TEST(FusedAlltoallTest, RanksWithoutBytesTakePartInEveryRound) {
  auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    FusionBuffer buffer(448);  // 74 for each of the six: 64
    const base::FakeClock clock;
    HookRecord record;
    // Rank 0 keeps 1000 bytes and gives 100 to rank 2; rank 1 has no part.
    AlltoallBatch batch(
        {{1000, 0, 60, 0, 0, 0, 0, 0, 0}, {0, 0, 40, 0, 0, 0, 0, 0, 0}}, rank,
        3);
    ASSERT_TRUE(FusedAlltoall({communicator, buffer, clock}, batch.tensors,
                              record.Hooks())
                    .ok());
    EXPECT_EQ(batch.outputs, batch.expected);
    EXPECT_EQ(communicator.num_allreduces, 1);
    if (rank == 0) {
      EXPECT_THAT(communicator.parts,
                  ElementsAre(ElementsAre(0, 0, 64), ElementsAre(0, 0, 36)));
    } else {
      EXPECT_THAT(communicator.parts,
                  ElementsAre(ElementsAre(0, 0, 0), ElementsAre(0, 0, 0)));
    }
    EXPECT_THAT(record.phases, ElementsAre(Pair(FusionPhase::kCommunicate, 0),
                                           Pair(FusionPhase::kPack, 0),
                                           Pair(FusionPhase::kCommunicate, 0),
                                           Pair(FusionPhase::kUnpack, 0),
                                           Pair(FusionPhase::kPack, 1),
                                           Pair(FusionPhase::kCommunicate, 1),
                                           Pair(FusionPhase::kUnpack, 1)));
    EXPECT_EQ(record.num_pauses, 1);
  });
}

TEST(FusedAlltoallTest, EmptyTensorsNeedNoMoreThanTheAgreementAboutIt) {
  auto world = collective::CreateInProcessWorld(2);
  RunRanks(2, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    AlltoallBatch batch({{0, 0, 0, 0}, {7, 0, 0, 9}}, rank, 2);
    ASSERT_TRUE(
        FusedAlltoall({communicator, buffer, clock}, batch.tensors, {}).ok());
    EXPECT_EQ(batch.outputs, batch.expected);
    EXPECT_EQ(communicator.num_allreduces, 1);
    EXPECT_THAT(communicator.parts, IsEmpty());
  });
}

TEST(FusedAlltoallTest, NothingIsCommunicatedForNoTensorsOrInAWorldOfOne) {
  UnimplementedCommunicator three(0, 3);
  UnimplementedCommunicator one(0, 1);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  HookRecord record;
  EXPECT_TRUE(FusedAlltoall({three, buffer, clock}, {}, record.Hooks()).ok());
  AlltoallBatch alone({{700}, {0}}, 0, 1);
  EXPECT_TRUE(
      FusedAlltoall({one, buffer, clock}, alone.tensors, record.Hooks()).ok());
  EXPECT_EQ(alone.outputs, alone.expected);
  EXPECT_THAT(record.phases, IsEmpty());
}

TEST(FusedAlltoallTest, PartitionThatDoesNotFitIsRefused) {
  UnimplementedCommunicator communicator(1, 2);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  Bytes input(20);
  Bytes output(8);
  const auto message = [&](std::vector<size_t> given,
                           std::vector<size_t> taken) {
    const absl::Status status = FusedAlltoall(
        {communicator, buffer, clock},
        {PartitionedTensor{input, absl::MakeSpan(output), given, taken}}, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({20, 1}, {4, 4}),
            "tensor 0 of the batch has 20 bytes of input, but a partition of "
            "21");
  EXPECT_EQ(message({16, 4}, {4, 3}),
            "tensor 0 of the batch has 8 bytes of output, but a partition of "
            "7");
  EXPECT_EQ(message({16, 4}, {8, 0}),
            "tensor 0 of the batch: rank 1 gives itself 4 bytes, but expects "
            "0");
}

}  // namespace
}  // namespace hvdlite::testing
