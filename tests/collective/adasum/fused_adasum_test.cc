#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
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
using collective::FusedAdasum;
using collective::FusedTensor;
using collective::FusionPhase;
using collective::Reduction;
using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNan;
using ::testing::Pair;
using ::testing::Pointwise;

using Vector = std::vector<double>;

Vector Rounded(DataType dtype, const Vector& values) {
  return Decode(dtype, Encode(dtype, values));
}

Vector Scaled(double factor, Vector values) {
  for (double& value : values) value *= factor;
  return values;
}

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector CombinePair(DataType wire, const Vector& a, const Vector& b) {
  if (Dot(a, a) == 0) return b;
  if (Dot(b, b) == 0) return a;
  const double a_factor = 1 - Dot(a, b) / (2 * Dot(a, a));
  const double b_factor = 1 - Dot(a, b) / (2 * Dot(b, b));
  Vector sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    sum[i] = a_factor * a[i] + b_factor * b[i];
  }
  return Rounded(wire, sum);
}

// The node over leaves [begin, end).
Vector CombineTree(DataType wire, const std::vector<Vector>& leaves,
                   size_t begin, size_t end) {
  if (end - begin == 1) return leaves[begin];
  const size_t middle = (begin + end) / 2;
  return CombinePair(wire, CombineTree(wire, leaves, begin, middle),
                     CombineTree(wire, leaves, middle, end));
}

// The tree of FusedAdasum()'s comment, over the ranks' vectors.
Vector Reference(DataType wire, const std::vector<Vector>& of_rank) {
  size_t num_leaves = 1;
  while (2 * num_leaves <= of_rank.size()) num_leaves *= 2;
  const size_t extra = of_rank.size() - num_leaves;
  std::vector<Vector> leaves;
  for (size_t i = 0; i < num_leaves; ++i) {
    leaves.push_back(i < extra
                         ? CombinePair(wire, of_rank[2 * i], of_rank[2 * i + 1])
                         : of_rank[i + extra]);
  }
  return CombineTree(wire, leaves, 0, num_leaves);
}

// vectors[rank][tensor]; an empty vector is absent, so `counts` has the sizes.
using VectorsOfRanks = std::vector<std::vector<Vector>>;

// Runs FusedAdasum(). Returns each rank's results as results[rank][tensor].
std::vector<std::vector<Bytes>> RunAdasum(const Reduction& reduction,
                                          const std::vector<size_t>& counts,
                                          const VectorsOfRanks& vectors,
                                          size_t buffer_bytes = 256) {
  const int size = static_cast<int>(vectors.size());
  std::vector<std::vector<Bytes>> results(size);
  RunInProcessRanks(size, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    RankResources own(buffer_bytes);
    std::vector<Bytes> inputs;
    std::vector<Bytes>& outputs = results[rank];
    for (size_t i = 0; i < counts.size(); ++i) {
      inputs.push_back(Encode(reduction.dtype, vectors[rank][i]));
      const bool in_place = i % 2 == 0 && !inputs[i].empty();
      outputs.push_back(in_place ? inputs[i]
                                 : Bytes(counts[i] * SizeOf(reduction.dtype)));
    }
    std::vector<FusedTensor> tensors;
    for (size_t i = 0; i < counts.size(); ++i) {
      FusedTensor tensor{inputs[i], absl::MakeSpan(outputs[i])};
      if (i % 2 == 0 && !inputs[i].empty()) tensor.input = outputs[i];
      tensors.push_back(tensor);
    }
    const absl::Status status =
        FusedAdasum(own.With(communicator), reduction, tensors, {});
    ASSERT_TRUE(status.ok()) << status;
  });
  return results;
}

// One tensor; all ranks must have the same bits.
Bytes RunOne(DataType dtype, const std::vector<Vector>& of_rank) {
  VectorsOfRanks vectors;
  for (const Vector& vector : of_rank) vectors.push_back({vector});
  const auto results =
      RunAdasum({.dtype = dtype}, {of_rank[0].size()}, vectors);
  EXPECT_THAT(results, Each(results[0]));
  return results[0][0];
}

// Vectors of different lengths, with angles between 0 and 90 degrees.
Vector Gradient(int rank, size_t tensor, size_t count) {
  Vector vector(count);
  for (size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i + 1);
    vector[i] = (1 + rank % 3) *
                (std::sin(x * (rank + 1) + tensor) + 0.7 * std::cos(x * x));
  }
  return vector;
}

struct Format {
  DataType dtype;
  Compression compression;
  DataType wire;
  double tolerance;  // relative to the largest element
};

class FusedAdasumOf : public ::testing::TestWithParam<Format> {};

TEST_P(FusedAdasumOf, AnyNumberOfRanksGivesTheTreesBits) {
  const Format& format = GetParam();
  const Reduction reduction = {.dtype = format.dtype,
                               .op = ReduceOp::kMin,  // does not matter
                               .prescale = 0.5,
                               .postscale = 2,
                               .compression = format.compression};
  const std::vector<size_t> counts = {1, 0, 37, 2, 400, 1, 0, 129};
  for (int size = 1; size <= 9; ++size) {
    VectorsOfRanks vectors(size);
    std::vector<std::vector<Vector>> prescaled(counts.size());
    for (int rank = 0; rank < size; ++rank) {
      for (size_t i = 0; i < counts.size(); ++i) {
        const bool absent = (rank + i) % 5 == 3;
        vectors[rank].push_back(absent ? Vector{}
                                       : Gradient(rank, i, counts[i]));
        prescaled[i].push_back(
            absent ? Vector(counts[i])
                   : Rounded(
                         format.wire,
                         Scaled(0.5, Rounded(format.dtype, vectors[rank][i]))));
      }
    }
    for (const size_t buffer_bytes : {64, 1 << 16}) {
      const auto results = RunAdasum(reduction, counts, vectors, buffer_bytes);
      EXPECT_THAT(results, Each(results[0])) << size << " ranks";
      for (size_t i = 0; i < counts.size(); ++i) {
        const Vector got = Decode(format.dtype, results[0][i]);
        const Vector expected = Scaled(2, Reference(format.wire, prescaled[i]));
        ASSERT_EQ(got.size(), expected.size());
        double largest = 0;
        for (const double value : expected) {
          largest = std::max(largest, std::abs(value));
        }
        for (size_t j = 0; j < got.size(); ++j) {
          ASSERT_NEAR(got[j], expected[j], format.tolerance * largest)
              << "element " << j << " of tensor " << i << ", " << size
              << " ranks";
        }
        EXPECT_EQ(got, Scaled(2, Rounded(format.wire, Scaled(0.5, got))));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, FusedAdasumOf,
    ::testing::Values(Format{DataType::kFloat64, Compression::kNone,
                             DataType::kFloat64, 1e-13},
                      Format{DataType::kFloat32, Compression::kNone,
                             DataType::kFloat32, 2e-6},
                      Format{DataType::kFloat16, Compression::kNone,
                             DataType::kFloat16, 2e-3},
                      Format{DataType::kBFloat16, Compression::kNone,
                             DataType::kBFloat16, 2e-2},
                      Format{DataType::kFloat32, Compression::kFloat16,
                             DataType::kFloat16, 2e-3},
                      Format{DataType::kFloat64, Compression::kBFloat16,
                             DataType::kBFloat16, 2e-2}),
    [](const ::testing::TestParamInfo<Format>& info) {
      return std::string(NameOf(info.param.dtype)) + "_" +
             std::string(NameOf(info.param.compression));
    });

TEST(FusedAdasumTest, OrthogonalVectorsAreAdded) {
  for (int size = 2; size <= 9; ++size) {
    std::vector<Vector> of_rank;
    Vector sum(40);
    for (int rank = 0; rank < size; ++rank) {
      Vector vector(40);
      for (int i = rank; i < 40; i += size) vector[i] = sum[i] = i + 0.5;
      of_rank.push_back(vector);
    }
    EXPECT_EQ(Decode(DataType::kFloat32, RunOne(DataType::kFloat32, of_rank)),
              sum);
  }
}

TEST(FusedAdasumTest, EqualVectorsGiveThatVector) {
  for (int size = 1; size <= 9; ++size) {
    const Vector vector = Gradient(1, 2, 101);
    EXPECT_EQ(RunOne(DataType::kFloat32, std::vector<Vector>(size, vector)),
              Encode(DataType::kFloat32, vector))
        << size << " ranks";
  }
}

TEST(FusedAdasumTest, ParallelVectorsAreAveraged) {
  const Vector vector = Gradient(1, 2, 30);
  const Vector got = Decode(
      DataType::kFloat64,
      RunOne(DataType::kFloat64, {vector, Scaled(3, vector), Scaled(2, vector),
                                  Scaled(4, vector)}));
  for (size_t i = 0; i < vector.size(); ++i) {
    EXPECT_NEAR(got[i], 2.5 * vector[i], 1e-14);
  }
}

TEST(FusedAdasumTest, ZeroVectorsAreDropped) {
  const Vector vector = Gradient(1, 2, 21);
  for (const int size : {2, 3, 4, 7}) {
    for (int holder = 0; holder < size; ++holder) {
      std::vector<Vector> of_rank(size, Vector(vector.size()));
      of_rank[holder] = vector;
      EXPECT_EQ(RunOne(DataType::kFloat32, of_rank),
                Encode(DataType::kFloat32, vector))
          << "rank " << holder << " of " << size;
    }
    EXPECT_EQ(RunOne(DataType::kFloat32, std::vector<Vector>(size, Vector(9))),
              Bytes(9 * 4));
  }
}

TEST(FusedAdasumTest, ScalingAllInputsScalesTheResult) {
  std::vector<Vector> of_rank;
  std::vector<Vector> scaled;
  for (int rank = 0; rank < 6; ++rank) {
    of_rank.push_back(Gradient(rank, 0, 50));
    scaled.push_back(Scaled(-0x1p20, of_rank.back()));
  }
  EXPECT_EQ(Decode(DataType::kFloat64, RunOne(DataType::kFloat64, scaled)),
            Scaled(-0x1p20, Decode(DataType::kFloat64,
                                   RunOne(DataType::kFloat64, of_rank))));
}

TEST(FusedAdasumTest, NanAffectsOnlyItsTensor) {
  Vector with_nan = Gradient(0, 0, 20);
  with_nan[13] = std::numeric_limits<double>::quiet_NaN();
  const auto results = RunAdasum({}, {20, 3},
                                 {{with_nan, {1, 0, 0}},
                                  {Gradient(1, 0, 20), {0, 1, 0}},
                                  {Gradient(2, 0, 20), {0, 0, 1}}});
  EXPECT_THAT(results, Each(results[0]));
  EXPECT_THAT(Decode(DataType::kFloat32, results[0][0]), Each(IsNan()));
  EXPECT_THAT(Decode(DataType::kFloat32, results[0][1]), ElementsAre(1, 1, 1));
}

TEST(FusedAdasumTest, EveryExchangeIsReportedAndFollowedByAPause) {
  // 256 bytes in chunks of 64: halves of 128 and 64 bytes, and the way back.
  RunInProcessRanks(4, [](Communicator& communicator) {
    RankResources own(64);
    Bytes bytes =
        Encode(DataType::kFloat32, Gradient(communicator.rank(), 0, 64));
    HookRecord record;
    ASSERT_TRUE(FusedAdasum(own.With(communicator), {}, {InPlace(bytes)},
                            record.Hooks())
                    .ok());
    EXPECT_THAT(record.phases, ElementsAre(Pair(FusionPhase::kPack, 0),
                                           Pair(FusionPhase::kCommunicate, 0),
                                           Pair(FusionPhase::kCommunicate, 1),
                                           Pair(FusionPhase::kCommunicate, 2),
                                           Pair(FusionPhase::kCommunicate, 3),
                                           Pair(FusionPhase::kCommunicate, 4),
                                           Pair(FusionPhase::kCommunicate, 5),
                                           Pair(FusionPhase::kUnpack, 5)));
    EXPECT_EQ(record.num_pauses, 5);
    EXPECT_THAT(record.shares, Pointwise(DoubleEq(), {1.0 / 6, 2.0 / 6, 3.0 / 6,
                                                      4.0 / 6, 5.0 / 6}));
  });
}

TEST(FusedAdasumTest, MemoryIsKeptForTheNextBucket) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    RankResources own(64);
    std::vector<const std::byte*> places;
    for (const size_t count : {3000, 3000, 10, 2000}) {
      Bytes bytes = Encode(DataType::kFloat32, Vector(count, 1.0));
      ASSERT_TRUE(
          FusedAdasum(own.With(communicator), {}, {InPlace(bytes)}, {}).ok());
      const absl::Span<std::byte> kept = own.buffer.Scratch(0);
      EXPECT_GE(kept.size(), 2 * 3000 * 4u);
      places.push_back(kept.data());
    }
    EXPECT_THAT(places, Each(places[0]));
  });
}

}  // namespace
}  // namespace hvdlite::testing
