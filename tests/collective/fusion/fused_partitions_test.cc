// Fused collectives for tensors whose rows are distributed over the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::Compression;
using collective::FusedAllgather;
using collective::FusedAllreduce;
using collective::FusedAlltoall;
using collective::FusedReduceScatter;
using collective::FusedTensor;
using collective::FusionHooks;
using collective::FusionPhase;
using collective::FusionResources;
using collective::PartitionedTensor;
using collective::Reduction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// The bytes that rank `from` sends to rank `to`; they differ for all arguments.
Bytes PieceBytes(size_t tensor, int from, int to, size_t size) {
  std::mt19937 random(static_cast<uint32_t>(tensor * 10007 + from * 101 + to));
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

void Append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// This rank's part of a tensor.
Bytes PartOfRank(const Bytes& bytes, const std::vector<size_t>& parts,
                 int rank) {
  const auto begin =
      bytes.begin() +
      std::accumulate(parts.begin(), parts.begin() + rank, std::ptrdiff_t{0});
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(parts[rank]));
}

// One rank's tensors, and the expected result.
struct Bucket {
  void Add(Bytes input, Bytes result, std::vector<size_t> input_bytes,
           std::vector<size_t> output_bytes) {
    inputs.push_back(std::move(input));
    outputs.emplace_back(result.size());
    expected.push_back(std::move(result));
    tensors.push_back({inputs.back(), absl::MakeSpan(outputs.back()),
                       std::move(input_bytes), std::move(output_bytes)});
  }

  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<Bytes> expected;
  std::vector<PartitionedTensor> tensors;
};

Bucket AllgatherBucket(const Sizes& sizes, int me, int size) {
  Bucket bucket;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Bytes all;
    for (int from = 0; from < size; ++from) {
      Append(all, PieceBytes(i, from, 0, sizes[i][from]));
    }
    bucket.Add(PieceBytes(i, me, 0, sizes[i][me]), all, {}, sizes[i]);
  }
  return bucket;
}

// The same for sums of bytes.
Bucket ReduceScatterBucket(const Sizes& sizes, int me, int size) {
  Bucket bucket;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Bytes sums(std::accumulate(sizes[i].begin(), sizes[i].end(), size_t{0}));
    for (int from = 0; from < size; ++from) {
      const Bytes piece = PieceBytes(i, from, 0, sums.size());
      for (size_t j = 0; j < sums.size(); ++j) {
        sums[j] = static_cast<std::byte>(std::to_integer<int>(sums[j]) +
                                         std::to_integer<int>(piece[j]));
      }
    }
    bucket.Add(PieceBytes(i, me, 0, sums.size()),
               PartOfRank(sums, sizes[i], me), sizes[i], {});
  }
  return bucket;
}

// Rank r sends sizes[i][r * size + s] bytes of tensor i to rank s.
Bucket AlltoallBucket(const Sizes& sizes, int me, int size) {
  Bucket bucket;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Bytes input;
    Bytes output;
    std::vector<size_t> given;
    std::vector<size_t> taken;
    for (int other = 0; other < size; ++other) {
      given.push_back(sizes[i][me * size + other]);
      taken.push_back(sizes[i][other * size + me]);
      Append(input, PieceBytes(i, me, other, given.back()));
      Append(output, PieceBytes(i, other, me, taken.back()));
    }
    bucket.Add(input, output, given, taken);
  }
  return bucket;
}

struct PartitionedCollective {
  std::string name;
  Bucket (*make)(const Sizes& sizes, int me, int size);
  absl::Status (*run)(const FusionResources& resources,
                      absl::Span<const PartitionedTensor> tensors,
                      const FusionHooks& hooks);
  bool has_parts_by_pairs = false;
};

class FusedPartitions : public ::testing::TestWithParam<PartitionedCollective> {
};

TEST_P(FusedPartitions, EveryRankGetsItsPartsOfRandomBuckets) {
  const PartitionedCollective& collective = GetParam();
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t buffer_bytes : {64, 1000, 1 << 16}) {
      RunInProcessRanks(size, [&](Communicator& communicator) {
        RankResources own(buffer_bytes);
        for (uint32_t seed = 0; seed < 25; ++seed) {
          const Sizes sizes = RandomSizes(
              seed, collective.has_parts_by_pairs ? size * size : size);
          const Bucket bucket =
              collective.make(sizes, communicator.rank(), size);
          const absl::Status status =
              collective.run(own.With(communicator), bucket.tensors, {});
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(bucket.outputs == bucket.expected)
              << "seed " << seed << ", rank " << communicator.rank() << " of "
              << size << ", buffer of " << buffer_bytes;
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FusedPartitions,
    ::testing::Values(
        PartitionedCollective{"Allgather", AllgatherBucket, FusedAllgather},
        PartitionedCollective{
            "ReduceScatter", ReduceScatterBucket,
            [](const auto& resources, auto tensors, const auto& hooks) {
              return FusedReduceScatter(resources, {.dtype = DataType::kUint8},
                                        tensors, hooks);
            }},
        PartitionedCollective{"Alltoall", AlltoallBucket, FusedAlltoall, true}),
    [](const ::testing::TestParamInfo<PartitionedCollective>& collective) {
      return collective.param.name;
    });

// Runs `body` on three ranks, with buffers of `buffer_bytes`.
void RunRecorded(
    size_t buffer_bytes,
    const std::function<void(PartRecorder&, RankResources&)>& body) {
  auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    PartRecorder communicator(std::move(world[rank]));
    RankResources own(buffer_bytes);
    body(communicator, own);
  });
}

TEST(FusedAllgatherTest, PartsAreEqualSharesOfTheBufferUntilTheirRankIsDone) {
  // The buffer has 149 bytes for each rank: parts of 128.
  RunRecorded(448, [](PartRecorder& communicator, RankResources& own) {
    HookRecord record;
    const Bucket bucket =
        AllgatherBucket({{100, 0, 200}, {50, 0, 100}}, communicator.rank(), 3);
    ASSERT_TRUE(
        FusedAllgather(own.With(communicator), bucket.tensors, record.Hooks())
            .ok());
    EXPECT_EQ(bucket.outputs, bucket.expected);
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

TEST(FusedAllgatherTest, PartsAreAtLeast64BytesEvenInASmallBuffer) {
  RunRecorded(64, [](PartRecorder& communicator, RankResources& own) {
    const Bucket bucket =
        AllgatherBucket({{100, 64, 1}}, communicator.rank(), 3);
    ASSERT_TRUE(
        FusedAllgather(own.With(communicator), bucket.tensors, {}).ok());
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(64, 64, 1), ElementsAre(36, 0, 0)));
  });
}

TEST(FusedAlltoallTest, RanksWithoutBytesTakePartInEveryRound) {
  // The buffer has 74 bytes for each of the six parts: parts of 64.
  RunRecorded(448, [](PartRecorder& communicator, RankResources& own) {
    HookRecord record;
    // Rank 0 keeps 1000 bytes and sends 100 to rank 2; rank 1 has no data.
    const Bucket bucket = AlltoallBucket(
        {{1000, 0, 60, 0, 0, 0, 0, 0, 0}, {0, 0, 40, 0, 0, 0, 0, 0, 0}},
        communicator.rank(), 3);
    ASSERT_TRUE(
        FusedAlltoall(own.With(communicator), bucket.tensors, record.Hooks())
            .ok());
    EXPECT_EQ(bucket.outputs, bucket.expected);
    EXPECT_EQ(communicator.num_allreduces, 1);
    const bool gives = communicator.rank() == 0;
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(0, 0, gives ? 64 : 0),
                            ElementsAre(0, 0, gives ? 36 : 0)));
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

TEST(FusedAlltoallTest, EmptyTensorsNeedOnlyTheAgreementOnRounds) {
  RunRecorded(64, [](PartRecorder& communicator, RankResources& own) {
    const Bucket bucket = AlltoallBucket(
        {{0, 0, 0, 0, 0, 0, 0, 0, 0}, {7, 0, 0, 0, 9, 0, 0, 0, 0}},
        communicator.rank(), 3);
    ASSERT_TRUE(FusedAlltoall(own.With(communicator), bucket.tensors, {}).ok());
    EXPECT_EQ(bucket.outputs, bucket.expected);
    EXPECT_EQ(communicator.num_allreduces, 1);
    EXPECT_THAT(communicator.parts, IsEmpty());
  });
}

// Tensors whose parts have `counts` elements. Values differ by rank and need
// rounding; expected values are not computed.
Bucket ValuesBucket(DataType dtype, const Sizes& counts, int me) {
  Bucket bucket;
  for (size_t i = 0; i < counts.size(); ++i) {
    std::vector<size_t> parts = counts[i];
    std::vector<double> values(
        std::accumulate(parts.begin(), parts.end(), size_t{0}));
    for (size_t j = 0; j < values.size(); ++j) {
      values[j] = 50 + 50 * std::sin(static_cast<double>(j * 7 + i + me));
    }
    for (size_t& part : parts) part *= SizeOf(dtype);
    bucket.Add(Encode(dtype, values), Bytes(parts[me]), parts, {});
  }
  return bucket;
}

// The expected result of this rank: it reduces all tensors in place.
std::vector<Bytes> PartsOfAllreduce(Communicator& communicator,
                                    const Reduction& reduction,
                                    const Bucket& bucket) {
  RankResources own(4096);
  std::vector<Bytes> reduced = bucket.inputs;
  std::vector<FusedTensor> whole;
  for (Bytes& bytes : reduced) whole.push_back(InPlace(bytes));
  EXPECT_TRUE(
      FusedAllreduce(own.With(communicator), reduction, whole, {}).ok());
  for (size_t i = 0; i < reduced.size(); ++i) {
    reduced[i] = PartOfRank(reduced[i], bucket.tensors[i].input_bytes,
                            communicator.rank());
  }
  return reduced;
}

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

TEST(FusedReduceScatterTest, RandomBucketsGiveTheBitsOfAnAllreduce) {
  for (const int size : {1, 2, 3, 5}) {
    for (const size_t buffer_bytes : {64, 1000, 1 << 16}) {
      RunInProcessRanks(size, [&](Communicator& communicator) {
        RankResources own(buffer_bytes);
        for (uint32_t seed = 0; seed < 40; ++seed) {
          const Reduction reduction = RandomReduction(seed);
          const Bucket bucket = ValuesBucket(
              reduction.dtype, RandomSizes(seed, size), communicator.rank());
          const absl::Status status = FusedReduceScatter(
              own.With(communicator), reduction, bucket.tensors, {});
          ASSERT_TRUE(status.ok()) << status;
          ASSERT_TRUE(bucket.outputs ==
                      PartsOfAllreduce(communicator, reduction, bucket))
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

TEST(FusedReduceScatterTest, PartsAreEqualSharesOfTheBufferInTheWireType) {
  // The buffer has 149 bytes for each rank: parts of 128 bytes, 64 elements.
  RunRecorded(448, [](PartRecorder& communicator, RankResources& own) {
    HookRecord record;
    const Reduction reduction = {.compression = Compression::kFloat16};
    const Bucket bucket = ValuesBucket(
        reduction.dtype, {{50, 0, 100}, {25, 0, 50}}, communicator.rank());
    ASSERT_TRUE(FusedReduceScatter(own.With(communicator), reduction,
                                   bucket.tensors, record.Hooks())
                    .ok());
    EXPECT_THAT(communicator.parts,
                ElementsAre(ElementsAre(128, 0, 128), ElementsAre(22, 0, 128),
                            ElementsAre(0, 0, 44)));
    EXPECT_EQ(record.phases.size(), 9);
    EXPECT_EQ(record.num_pauses, 2);
  });
}

}  // namespace
}  // namespace hvdlite::testing
