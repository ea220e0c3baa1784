#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/testing/conformance/allreduce_buckets.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::Compression;
using collective::FusedAllreduce;
using collective::FusedTensor;
using collective::FusionBuffer;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

class FusedAllreduceAtChunkSize : public ::testing::TestWithParam<size_t> {};

TEST_P(FusedAllreduceAtChunkSize, RandomBucketsMatchTheReference) {
  for (const int size : {1, 3}) {
    RunInProcessRanks(size, [&](Communicator& communicator) {
      FusionBuffer buffer(GetParam());
      for (uint32_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        AllreduceBucket bucket = RandomAllreduceBucket(seed);
        for (int& rank : bucket.absent_on_rank) {
          const bool all_are = size == 1 && rank == 0;
          if (all_are && bucket.reduction.op != ReduceOp::kSum) rank = -1;
        }
        CheckAllreduceBucket(communicator, buffer, bucket);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(ChunkSizes, FusedAllreduceAtChunkSize,
                         ::testing::Values(1, 64, 100, 192, 1024, 65536,
                                           1 << 20));

// The buffer holds several chunks, which are in flight together.
TEST(FusedAllreduceTest, ChunksInFlightTogetherArriveAtTheirPlaces) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    FusionBuffer buffer(size_t{512} << 10);
    ASSERT_GT(communicator.allreduces_at_once(buffer.bytes().size()), 1u);
    const int rank = communicator.rank();
    std::vector<int32_t> values(900'001);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int32_t>(i) * (rank + 1);
    }
    const auto bytes = absl::MakeSpan(
        reinterpret_cast<std::byte*>(values.data()), values.size() * 4);
    base::FakeClock clock;
    std::vector<int64_t> unpacked;
    const collective::FusionHooks hooks = {
        .on_phase = [&](collective::FusionPhase phase, int64_t chunk, int64_t,
                        int64_t) {
          if (phase == collective::FusionPhase::kUnpack) {
            unpacked.push_back(chunk);
          }
        }};
    ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock},
                               {.dtype = DataType::kInt32},
                               {FusedTensor{bytes, bytes}}, hooks)
                    .ok());
    EXPECT_GT(unpacked.size(), 10u);
    EXPECT_TRUE(std::is_sorted(unpacked.begin(), unpacked.end()));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], static_cast<int32_t>(i) * 6) << "element " << i;
    }
  });
}

TEST(FusedAllreduceTest, ErrorWhileChunksAreInFlightEndsTheBucket) {
  RunInProcessRanks(2, [](Communicator& communicator) {
    FusionBuffer buffer(size_t{512} << 10);
    Bytes bytes(3'000'000);
    base::FakeClock clock;
    int pauses = 0;
    const collective::FusionHooks hooks = {.between_chunks = [&] {
      return ++pauses == 2 ? absl::UnavailableError("a rank is lost")
                           : absl::OkStatus();
    }};
    EXPECT_EQ(
        FusedAllreduce({communicator, buffer, clock},
                       {.dtype = DataType::kInt32}, {InPlace(bytes)}, hooks)
            .message(),
        "a rank is lost");
    EXPECT_EQ(pauses, 2);
  });
}

TEST(FusedAllreduceTest, AverageOfIntegersIsExactAndTruncated) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    RankResources own(64);
    const int rank = communicator.rank();
    Bytes bytes = Encode(
        DataType::kInt32,
        {5, 4.0 + rank, -4.0 - rank, 1.0 * (rank == 0), -2.0 * (rank == 1)});
    ASSERT_TRUE(
        FusedAllreduce(own.With(communicator),
                       {.dtype = DataType::kInt32, .postscale = 1 / 3.0},
                       {InPlace(bytes)}, {})
            .ok());
    EXPECT_THAT(Decode(DataType::kInt32, bytes), ElementsAre(5, 5, -5, 0, 0));
  });
}

TEST(FusedAllreduceTest, TensorAbsentOnAllRanksIsZero) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    RankResources own(64);
    Bytes bytes(48, std::byte{0x5a});
    ASSERT_TRUE(FusedAllreduce(own.With(communicator),
                               {.prescale = 2, .postscale = 0.5},
                               {FusedTensor{{}, absl::MakeSpan(bytes)}}, {})
                    .ok());
    EXPECT_EQ(bytes, Bytes(48));
  });
}

// Values that no 16-bit type can represent.
std::vector<double> Awkward(int rank, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<double>(i + 1) * (rank + 1)) / 3;
  }
  return values;
}

double Round(DataType dtype, double value) {
  return Decode(dtype, Encode(dtype, {value}))[0];
}

// Inputs of several tensors with awkward values, and the results if values are
// rounded to `wire` before and after every addition. The postscale is applied
// before the sum, as far as the number of ranks: this shows below the smallest
// normal float16.
void CheckCompression(Communicator& communicator, DataType dtype,
                      Compression compression, DataType wire) {
  RankResources own(192);
  const double divisor = wire == dtype              ? 1
                         : communicator.size() == 3 ? 4
                                                    : communicator.size();
  std::vector<Bytes> tensors;
  std::vector<Bytes> expected;
  for (const size_t count : {1, 0, 100, 3, 2500}) {
    tensors.push_back(Encode(dtype, Awkward(communicator.rank(), count)));
    std::vector<double> sums(count);
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const std::vector<double> values =
          Decode(dtype, Encode(dtype, Awkward(rank, count)));
      for (size_t i = 0; i < count; ++i) {
        sums[i] = Round(wire, sums[i] + Round(wire, 0.5 / divisor * values[i]));
      }
    }
    for (double& sum : sums) sum *= 0.25 * divisor;
    expected.push_back(Encode(dtype, sums));
  }
  std::vector<FusedTensor> spans;
  for (Bytes& tensor : tensors) spans.push_back(InPlace(tensor));
  const absl::Status status = FusedAllreduce(own.With(communicator),
                                             {.dtype = dtype,
                                              .prescale = 0.5,
                                              .postscale = 0.25,
                                              .compression = compression},
                                             spans, {});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(tensors[i] == expected[i])
        << "tensor " << i << " of " << std::string(NameOf(dtype)) << " as "
        << std::string(NameOf(wire)) << " on rank " << communicator.rank()
        << " of " << communicator.size();
  }
}

TEST(FusedAllreduceTest, CompressedValuesAreRoundedOncePerHop) {
  for (const int size : {1, 2, 3}) {
    RunInProcessRanks(size, [](Communicator& communicator) {
      for (const DataType dtype : {DataType::kFloat32, DataType::kFloat64}) {
        CheckCompression(communicator, dtype, Compression::kFloat16,
                         DataType::kFloat16);
        CheckCompression(communicator, dtype, Compression::kBFloat16,
                         DataType::kBFloat16);
        CheckCompression(communicator, DataType::kBFloat16,
                         Compression::kFloat16, DataType::kBFloat16);
      }
    });
  }
}

// The result if all ranks have `value`.
std::vector<double> ReduceEqualValues(Communicator& communicator,
                                      const collective::Reduction& reduction,
                                      double value) {
  RankResources own(64);
  Bytes bytes = Encode(reduction.dtype, std::vector<double>(40, value));
  const absl::Status status =
      FusedAllreduce(own.With(communicator), reduction, {InPlace(bytes)}, {});
  EXPECT_TRUE(status.ok()) << status;
  return Decode(reduction.dtype, bytes);
}

TEST(FusedAllreduceTest, CompressedSumsStayInRangeIfTheirResultDoes) {
  for (const int size : {2, 4, 7, 8}) {
    RunInProcessRanks(size, [&](Communicator& communicator) {
      for (const DataType dtype : {DataType::kFloat32, DataType::kFloat64}) {
        const auto reduce = [&](double prescale, double postscale,
                                double value) {
          return ReduceEqualValues(communicator,
                                   {.dtype = dtype,
                                    .prescale = prescale,
                                    .postscale = postscale,
                                    .compression = Compression::kFloat16},
                                   value);
        };
        // Within the 11 bits of a float16.
        const auto near = [](double value) {
          return Each(DoubleNear(value, std::abs(value) / 512));
        };
        EXPECT_THAT(reduce(1, 1.0 / size, 60000), near(60000));
        EXPECT_THAT(reduce(1, -1.0 / size, 60000), near(-60000));
        EXPECT_THAT(reduce(2, 1.0 / size, 30000), near(60000));
        // An average that is scaled up or down afterwards.
        EXPECT_THAT(reduce(1, 1.5 / size, 40000), near(60000));
        EXPECT_THAT(reduce(1, 0.001 / size, 60000), near(60));
        // A sum that is scaled to a fraction.
        EXPECT_THAT(reduce(1, 0.5, 110000.0 / size), near(55000));
        // A factor that enlarges results is applied after communication.
        EXPECT_THAT(reduce(1, 1e6, 10), near(1e7 * size));
        EXPECT_THAT(reduce(1, 0, 60000), Each(0));
      }
    });
  }
}

TEST(FusedAllreduceTest, PrescalingPreservesSmallValuesInCompression) {
  RunInProcessRanks(4, [](Communicator& communicator) {
    const auto average = [&](double prescale) {
      return ReduceEqualValues(communicator,
                               {.prescale = prescale,
                                .postscale = 0.25 / prescale,
                                .compression = Compression::kFloat16},
                               std::ldexp(1.0, -24))[0];
    };
    EXPECT_EQ(average(1), 0);  // a quarter of the smallest float16
    EXPECT_EQ(average(1024), std::ldexp(1.0, -24));
  });
}

}  // namespace
}  // namespace hvdlite::testing
