#include "collective/kernels/reduction_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/collective/kernels/each_target.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {
namespace {

using collective::AllFinite;
using collective::CopyScaled;
using collective::FillNeutral;
using collective::Reduce;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsNan;

const size_t kAwkwardCounts[] = {0, 1, 2, 3, 7, 64, 1000, 100003};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> Scaled(DataType dtype, double factor,
                           const std::vector<double>& values) {
  const std::vector<std::byte> in = Encode(dtype, values);
  std::vector<std::byte> out(in.size());
  CopyScaled(dtype, factor, in, absl::MakeSpan(out));
  std::vector<std::byte> in_place = in;
  CopyScaled(dtype, factor, in_place, absl::MakeSpan(in_place));
  EXPECT_EQ(in_place, out);
  return Decode(dtype, out);
}

class ReductionKernelsTest : public EachTargetTest {};

TEST_P(ReductionKernelsTest, ReduceMatchesTheReference) {
  for (const DataType dtype : AllDataTypes()) {
    for (const ReduceOp op : ReduceOpsOf(dtype)) {
      for (const size_t count : kAwkwardCounts) {
        std::vector<std::byte> inout = ContributionBytes(dtype, op, 0, count);
        for (int rank = 1; rank < 5; ++rank) {
          Reduce(op, dtype, ContributionBytes(dtype, op, rank, count),
                 absl::MakeSpan(inout));
        }
        EXPECT_TRUE(inout == ExpectedReduction(dtype, op, 5, count))
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
            << " " << count;
      }
    }
  }
}

TEST_P(ReductionKernelsTest, NonfiniteElementIsFoundAtAnyPosition) {
  for (const DataType dtype : AllDataTypes()) {
    if (!Rounds(dtype)) {
      const std::vector<std::byte> ones(64, std::byte{0xff});
      EXPECT_TRUE(AllFinite(dtype, ones)) << std::string(NameOf(dtype));
      continue;
    }
    for (const size_t count : kAwkwardCounts) {
      std::vector<double> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = i % 2 == 0 ? 0 : -65504;
      EXPECT_TRUE(AllFinite(dtype, Encode(dtype, values)));
      for (const size_t i : {size_t{0}, count / 3, count / 2, count - 1}) {
        if (i >= count) continue;
        for (const double odd : {kNan, -kNan, kInfinity, -kInfinity}) {
          std::vector<double> one = values;
          one[i] = odd;
          EXPECT_FALSE(AllFinite(dtype, Encode(dtype, one)))
              << std::string(NameOf(dtype)) << " " << count << " " << i;
        }
      }
    }
  }
}

TEST_P(ReductionKernelsTest, NonfinitePartOfAComplexNumberIsFound) {
  for (const DataType dtype : {DataType::kComplex64, DataType::kComplex128}) {
    for (const size_t count : {1, 7, 1000}) {
      for (size_t part = 0; part < 2 * count; ++part) {
        std::vector<double> parts(2 * count, 1.0);
        EXPECT_TRUE(AllFinite(dtype, Encode(PartOf(dtype), parts)));
        parts[part] = part % 4 < 2 ? kNan : -kInfinity;
        EXPECT_FALSE(AllFinite(dtype, Encode(PartOf(dtype), parts)))
            << std::string(NameOf(dtype)) << " " << count << " " << part;
      }
    }
  }
}

TEST_P(ReductionKernelsTest, PartsOfComplexNumbersDoNotMix) {
  for (const DataType dtype : {DataType::kComplex64, DataType::kComplex128}) {
    const DataType part = PartOf(dtype);
    const std::vector<std::byte> in = Encode(part, {1, 2, kNan, 3, 4, kNan});
    std::vector<std::byte> inout =
        Encode(part, {10, 20, 30, 40, kInfinity, 60});
    Reduce(ReduceOp::kSum, dtype, in, absl::MakeSpan(inout));
    CopyScaled(dtype, 0.5, inout, absl::MakeSpan(inout));
    EXPECT_THAT(Decode(part, inout),
                ElementsAre(5.5, 11, IsNan(), 21.5, kInfinity, IsNan()));
  }
}

TEST_P(ReductionKernelsTest, SixteenBitFloatsAreAddedInFloat32AndRoundedOnce) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBFloat16}) {
    std::mt19937 random(5);
    std::vector<double> a(4099);
    std::vector<double> b(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = std::ldexp(static_cast<double>(random() % 4096) - 2048, -9);
      b[i] = std::ldexp(static_cast<double>(random() % 4096) - 2048, -12);
    }
    const std::vector<std::byte> in = Encode(dtype, a);
    std::vector<std::byte> inout = Encode(dtype, b);
    // Sums of such values are exact in double and in float32.
    const std::vector<double> rounded_a = Decode(dtype, in);
    const std::vector<double> rounded_b = Decode(dtype, inout);
    std::vector<double> sums(a.size());
    for (size_t i = 0; i < a.size(); ++i) sums[i] = rounded_a[i] + rounded_b[i];
    Reduce(ReduceOp::kSum, dtype, in, absl::MakeSpan(inout));
    EXPECT_EQ(Decode(dtype, inout), Decode(dtype, Encode(dtype, sums)));
  }
}

TEST_P(ReductionKernelsTest, MinAndMaxPropagateNanFromEitherSide) {
  for (const DataType dtype : AllDataTypes()) {
    if (!IsFloat(dtype)) continue;
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      const std::vector<std::byte> in =
          Encode(dtype, {kNan, 1, kNan, kInfinity, -kInfinity, kNan});
      std::vector<std::byte> inout =
          Encode(dtype, {1, kNan, kNan, kNan, kNan, -kInfinity});
      Reduce(op, dtype, in, absl::MakeSpan(inout));
      EXPECT_THAT(Decode(dtype, inout), Each(IsNan()))
          << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
    }
  }
}

TEST_P(ReductionKernelsTest, AnyNonzeroByteIsTrueAndResultsAreZeroOrOne) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  std::vector<std::byte> inout = bytes({1, 4, 0, 0});
  Reduce(ReduceOp::kProduct, DataType::kBool, bytes({2, 0, 2, 0}),
         absl::MakeSpan(inout));
  EXPECT_EQ(inout, bytes({1, 0, 0, 0}));
  inout = bytes({1, 4, 0, 0});
  Reduce(ReduceOp::kSum, DataType::kBool, bytes({2, 0, 2, 0}),
         absl::MakeSpan(inout));
  EXPECT_EQ(inout, bytes({1, 1, 1, 0}));
}

TEST_P(ReductionKernelsTest, NeutralElementChangesNothing) {
  for (const DataType dtype : AllDataTypes()) {
    for (const ReduceOp op : ReduceOpsOf(dtype)) {
      std::vector<double> values = Contribution(dtype, op, 1, 130);
      if (Rounds(dtype)) {
        values.insert(values.end(), {kInfinity, -kInfinity});
      } else if (dtype != DataType::kBool) {
        // The largest value that double can also represent.
        const int bits = static_cast<int>(8 * SizeOf(dtype));
        const double end = std::ldexp(1, IsUnsigned(dtype) ? bits : bits - 1);
        values.insert(values.end(), {IsUnsigned(dtype) ? 0 : -end,
                                     end - (bits == 64 ? 2048 : 1)});
      }
      const std::vector<std::byte> before = Encode(dtype, values);
      std::vector<std::byte> after = before;
      std::vector<std::byte> neutral(before.size());
      FillNeutral(op, dtype, absl::MakeSpan(neutral));
      Reduce(op, dtype, neutral, absl::MakeSpan(after));
      EXPECT_EQ(after, before)
          << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
      Reduce(op, dtype, before, absl::MakeSpan(neutral));
      EXPECT_EQ(neutral, before)
          << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
    }
  }
}

TEST_P(ReductionKernelsTest, FactorOneCopiesEveryBit) {
  std::mt19937 random(7);
  std::vector<std::byte> in(4096 + 8);
  for (std::byte& byte : in) byte = static_cast<std::byte>(random() & 0xff);
  for (const DataType dtype : AllDataTypes()) {
    std::vector<std::byte> out(in.size());
    CopyScaled(dtype, 1, in, absl::MakeSpan(out));
    EXPECT_EQ(out, in) << std::string(NameOf(dtype));
  }
}

TEST_P(ReductionKernelsTest, FloatsAreScaledAndRoundedOnce) {
  for (const DataType dtype : AllDataTypes()) {
    if (!Rounds(dtype)) continue;
    EXPECT_THAT(Scaled(dtype, 0.25, {4, -2, 1, 0, kInfinity}),
                ElementsAre(1, -0.5, 0.25, 0, kInfinity));
    EXPECT_THAT(Scaled(dtype, -3, {kNan}), Each(IsNan()));
    const std::vector<double> thousand(1000, 1.0);
    EXPECT_THAT(Scaled(dtype, 0.5, thousand), Each(0.5));
  }
  EXPECT_THAT(Scaled(DataType::kFloat16, 1 / 3.0, {1}),
              ElementsAre(DecodeFloat16(EncodeFloat16(1 / 3.0))));
}

TEST_P(ReductionKernelsTest, IntegersAreScaledInDoubleAndTruncated) {
  for (const DataType dtype : {DataType::kInt32, DataType::kInt64,
                               DataType::kInt8, DataType::kInt16}) {
    EXPECT_THAT(Scaled(dtype, 0.5, {7, -7, 1, -1, 0}),
                ElementsAre(3, -3, 0, 0, 0));
    EXPECT_THAT(Scaled(dtype, 2.5, {3, -3}), ElementsAre(7, -7));
  }
  for (const DataType dtype : AllDataTypes()) {
    if (!IsUnsigned(dtype)) continue;
    EXPECT_THAT(Scaled(dtype, 0.5, {255, 1}), ElementsAre(127, 0));
  }
  EXPECT_THAT(Scaled(DataType::kUint64, 0.5, {0x1p63, 0x1p64 - 2048}),
              ElementsAre(0x1p62, 0x1p63 - 1024));
  // The tolerance for rounding does not change these.
  EXPECT_THAT(Scaled(DataType::kInt64, 2, {0x1p60, -0x1p60, 0x1p52 + 1}),
              ElementsAre(0x1p61, -0x1p61, 0x1p53 + 2));
}

TEST_P(ReductionKernelsTest, AverageOfEqualIntegersIsThatInteger) {
  // 1/49.0 * 49 is less than 1 in double.
  for (int size = 1; size <= 2000; ++size) {
    for (const int value : {1, 2, 3, 7, 1000, 99999}) {
      const double sum = static_cast<double>(size) * value;
      ASSERT_THAT(Scaled(DataType::kInt64, 1.0 / size, {sum, -sum}),
                  ElementsAre(value, -value))
          << size;
      const double below = std::trunc((sum - 1) / size);
      ASSERT_THAT(Scaled(DataType::kInt64, 1.0 / size, {sum - 1, 1 - sum}),
                  ElementsAre(below, -below))
          << size;
    }
  }
}

TEST_P(ReductionKernelsTest, ScaledIntegersStayInRange) {
  EXPECT_THAT(Scaled(DataType::kUint8, 2, {100, 128, 255}),
              ElementsAre(200, 255, 255));
  EXPECT_THAT(Scaled(DataType::kUint8, -1, {1, 0}), ElementsAre(0, 0));
  EXPECT_THAT(Scaled(DataType::kInt8, 2, {63, 64, -64, -65}),
              ElementsAre(126, 127, -128, -128));
  EXPECT_THAT(Scaled(DataType::kInt32, 1e30, {1, -1, 0}),
              ElementsAre(0x1p31 - 1, -0x1p31, 0));
  EXPECT_THAT(Scaled(DataType::kInt64, 1e30, {1, -1, 0}),
              ElementsAre(0x1p63, -0x1p63, 0));
  EXPECT_THAT(Scaled(DataType::kInt32, kNan, {1, 0}), ElementsAre(0, 0));
  EXPECT_THAT(Scaled(DataType::kInt16, 2, {16383, 16384, -16384, -16385}),
              ElementsAre(32766, 32767, -32768, -32768));
  EXPECT_THAT(Scaled(DataType::kUint16, 2, {32767, 32768, 65535}),
              ElementsAre(65534, 65535, 65535));
  EXPECT_THAT(Scaled(DataType::kUint32, 2, {0x1p31 - 1, 0x1p31}),
              ElementsAre(0x1p32 - 2, 0x1p32 - 1));
  EXPECT_THAT(Scaled(DataType::kUint64, 1e30, {1, 0}), ElementsAre(0x1p64, 0));
  EXPECT_THAT(Scaled(DataType::kUint64, -1, {1, 0}), ElementsAre(0, 0));
}

TEST_P(ReductionKernelsTest, ScaledBoolIsTruncatedToFalseBelowOne) {
  EXPECT_THAT(Scaled(DataType::kBool, 0.5, {1, 0}), ElementsAre(0, 0));
  EXPECT_THAT(Scaled(DataType::kBool, 3, {1, 0}), ElementsAre(1, 0));
  EXPECT_THAT(Scaled(DataType::kBool, -1, {1, 0}), ElementsAre(1, 0));
}

HVDLITE_INSTANTIATE_FOR_EACH_TARGET(ReductionKernelsTest);

}  // namespace
}  // namespace hvdlite::testing
