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
using collective::FusedAllgather;
using collective::FusionBuffer;
using collective::FusionPhase;
using collective::PartitionedTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// The tensors of one rank, whose parts have `sizes`: [tensor][rank].
struct AllgatherBatch {
  AllgatherBatch(const std::vector<std::vector<size_t>>& sizes, int me) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      Bytes all;
      for (size_t rank = 0; rank < sizes[i].size(); ++rank) {
        const int from = static_cast<int>(rank);
        Append(all, PieceBytes(i, from, 0, sizes[i][rank]));
      }
      inputs.push_back(PieceBytes(i, me, 0, sizes[i][me]));
      outputs.push_back(Bytes(all.size()));
      expected.push_back(all);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      tensors.push_back({inputs[i], absl::MakeSpan(outputs[i]), {}, sizes[i]});
    }
  }

  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<Bytes> expected;
  std::vector<PartitionedTensor> tensors;
};

TEST(FusedAllgatherTest, EveryRankGetsAllPartsOfRandomBatches) {
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t buffer_bytes : {64, 1000, 1 << 16}) {
      RunInProcessRanks(size, [&](Communicator& communicator) {
        FusionBuffer buffer(buffer_bytes);
        const base::FakeClock clock;
        for (uint32_t seed = 0; seed < 25; ++seed) {
          AllgatherBatch batch(RandomSizes(seed, size), communicator.rank());
          const absl::Status status =
              FusedAllgather({communicator, buffer, clock}, batch.tensors, {});
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(batch.outputs == batch.expected)
              << "seed " << seed << ", rank " << communicator.rank() << " of "
              << size << ", buffer of " << buffer_bytes;
        }
      });
    }
  }
}

TEST(FusedAllgatherTest,
     PartsAreEqualSharesOfTheBufferUntilTheirRankIsThrough) {
  auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    FusionBuffer buffer(448);  // 149 for each: 128
    const base::FakeClock clock;
    HookRecord record;
    AllgatherBatch batch({{100, 0, 200}, {50, 0, 100}}, rank);
    ASSERT_TRUE(FusedAllgather({communicator, buffer, clock}, batch.tensors,
                               record.Hooks())
                    .ok());
    EXPECT_EQ(batch.outputs, batch.expected);
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(128, 0, 128), ElementsAre(22, 0, 128),
                            ElementsAre(0, 0, 44)));
    EXPECT_THAT(
        record.phases,
        ElementsAre(
            Pair(FusionPhase::kPack, 0), Pair(FusionPhase::kCommunicate, 0),
            Pair(FusionPhase::kUnpack, 0), Pair(FusionPhase::kPack, 1),
            Pair(FusionPhase::kCommunicate, 1), Pair(FusionPhase::kUnpack, 1),
            Pair(FusionPhase::kPack, 2), Pair(FusionPhase::kCommunicate, 2),
            Pair(FusionPhase::kUnpack, 2)));
    EXPECT_EQ(record.num_pauses, 2);
  });
}

TEST(FusedAllgatherTest, PartsOf64BytesAreUsedWhereTheBufferIsTooSmall) {
  auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    AllgatherBatch batch({{100, 64, 1}}, rank);
    ASSERT_TRUE(
        FusedAllgather({communicator, buffer, clock}, batch.tensors, {}).ok());
    EXPECT_EQ(batch.outputs, batch.expected);
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(64, 64, 1), ElementsAre(36, 0, 0)));
  });
}

TEST(FusedAllgatherTest, NothingIsCommunicatedForNoBytesOrInAWorldOfOne) {
  UnimplementedCommunicator three(0, 3);
  UnimplementedCommunicator one(0, 1);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  HookRecord record;
  EXPECT_TRUE(FusedAllgather({three, buffer, clock}, {}, record.Hooks()).ok());
  AllgatherBatch empty({{0, 0, 0}, {0, 0, 0}}, 0);
  EXPECT_TRUE(
      FusedAllgather({three, buffer, clock}, empty.tensors, record.Hooks())
          .ok());
  AllgatherBatch alone({{70}, {0}}, 0);
  EXPECT_TRUE(
      FusedAllgather({one, buffer, clock}, alone.tensors, record.Hooks()).ok());
  EXPECT_EQ(alone.outputs, alone.expected);
  EXPECT_THAT(record.phases, IsEmpty());
}

TEST(FusedAllgatherTest, PartitionThatDoesNotFitIsRefused) {
  UnimplementedCommunicator communicator(1, 2);
  FusionBuffer buffer(64);
  const base::FakeClock clock;
  Bytes input(8);
  Bytes output(20);
  const auto message = [&](std::vector<size_t> partition) {
    const absl::Status status = FusedAllgather(
        {communicator, buffer, clock},
        {PartitionedTensor{input, absl::MakeSpan(output), {}, partition}}, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(message({20}),
            "tensor 0 of the batch has a partition of its output for 1 ranks, "
            "not for 2");
  EXPECT_EQ(message({10, 8}),
            "tensor 0 of the batch has 20 bytes of output, but a partition of "
            "18");
  EXPECT_EQ(message({8, 12}),
            "tensor 0 of the batch has 8 bytes of input, but rank 1 has a part "
            "of 12");
}

TEST(FusedAllgatherTest, ErrorBetweenChunksEndsTheBatch) {
  RunInProcessRanks(2, [](Communicator& communicator) {
    FusionBuffer buffer(128);
    const base::FakeClock clock;
    AllgatherBatch batch({{100, 100}}, communicator.rank());
    const absl::Status status = FusedAllgather(
        {communicator, buffer, clock}, batch.tensors,
        {.on_phase = {},
         .between_chunks = [] { return absl::AbortedError("enough"); }});
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("enough"));
  });
}

}  // namespace
}  // namespace hvdlite::testing
