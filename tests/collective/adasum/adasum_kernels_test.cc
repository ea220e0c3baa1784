#include "collective/adasum/adasum_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {
namespace {

using collective::AdasumFactors;
using collective::CombineVectors;
using collective::FactorsFor;
using collective::MultiplyVectors;
using collective::ScalarProducts;

constexpr DataType kFloatTypes[] = {DataType::kFloat32, DataType::kFloat64,
                                    DataType::kFloat16, DataType::kBFloat16};

// Multiples of 1/8 with at most 7 bits: they, and sums of their products in
// double, are exact in every type.
std::vector<double> Eighths(size_t count, size_t start) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = (static_cast<double>((start + i) * 37 % 101) - 50) / 8;
  }
  return values;
}

TEST(AdasumKernelsTest, ScalarProductsOfEveryLengthAndOffsetAreExact) {
  for (const DataType dtype : kFloatTypes) {
    const std::vector<double> a = Eighths(320, 0);
    const std::vector<double> b = Eighths(320, 500);
    const std::vector<std::byte> a_bytes = Encode(dtype, a);
    const std::vector<std::byte> b_bytes = Encode(dtype, b);
    for (size_t count = 0; count <= 300; ++count) {
      const size_t a_begin = count % 17;
      const size_t b_begin = count / 3 % 9;
      double aa = 0;
      double bb = 0;
      double ab = 0;
      for (size_t i = 0; i < count; ++i) {
        aa += a[a_begin + i] * a[a_begin + i];
        bb += b[b_begin + i] * b[b_begin + i];
        ab += a[a_begin + i] * b[b_begin + i];
      }
      const size_t bytes = SizeOf(dtype);
      const ScalarProducts products = MultiplyVectors(
          dtype,
          absl::MakeConstSpan(a_bytes).subspan(a_begin * bytes, count * bytes),
          absl::MakeConstSpan(b_bytes).subspan(b_begin * bytes, count * bytes));
      ASSERT_EQ(products.aa, aa) << std::string(NameOf(dtype)) << count;
      ASSERT_EQ(products.bb, bb) << std::string(NameOf(dtype)) << count;
      ASSERT_EQ(products.ab, ab) << std::string(NameOf(dtype)) << count;
    }
  }
}

TEST(AdasumKernelsTest, ProductsThatFloat32CannotHoldAreSummedInDouble) {
  const std::vector<std::byte> large =
      Encode(DataType::kFloat32, {0x1p100, 0x1p-30});
  const std::vector<std::byte> small =
      Encode(DataType::kFloat32, {0x1p-100, 1});
  const ScalarProducts products =
      MultiplyVectors(DataType::kFloat32, large, small);
  EXPECT_EQ(products.aa, 0x1p200);
  EXPECT_EQ(products.bb, 1);
  EXPECT_EQ(products.ab, 1 + 0x1p-30);
}

TEST(AdasumKernelsTest, FactorsFollowTheFormulaAndDropZeroVectors) {
  const AdasumFactors factors = FactorsFor({.aa = 4, .bb = 2, .ab = -1});
  EXPECT_EQ(factors.a, 1.125);
  EXPECT_EQ(factors.b, 1.25);
  const AdasumFactors zero_a = FactorsFor({.aa = 0, .bb = 2, .ab = 0});
  EXPECT_EQ(zero_a.a, 1);
  EXPECT_EQ(zero_a.b, 1);
  const AdasumFactors zero_b = FactorsFor({.aa = 3, .bb = 0, .ab = 0});
  EXPECT_EQ(zero_b.a, 1);
  EXPECT_EQ(zero_b.b, 1);
}

TEST(AdasumKernelsTest, CombinationsAreRoundedOnceToTheirType) {
  for (const DataType dtype : kFloatTypes) {
    for (const size_t count : {0, 1, 5, 64, 300}) {
      const std::vector<double> a = Eighths(count, 3);
      const std::vector<double> b = Eighths(count, 77);
      const AdasumFactors factors = {0.8125, -0.375};  // exact in float32
      std::vector<double> expected(count);
      for (size_t i = 0; i < count; ++i) {
        expected[i] = factors.a * a[i] + factors.b * b[i];
      }
      std::vector<std::byte> inout = Encode(dtype, b);
      CombineVectors(dtype, factors, Encode(dtype, a), absl::MakeSpan(inout));
      EXPECT_TRUE(inout == Encode(dtype, expected))
          << std::string(NameOf(dtype)) << " " << count;
    }
  }
}

}  // namespace
}  // namespace hvdlite::testing
