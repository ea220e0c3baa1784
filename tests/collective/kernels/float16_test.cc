#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "collective/kernels/elements.h"
#include "tests/testing/conformance/element_values.h"

namespace hvdlite::collective {
namespace {

using ::hvdlite::testing::DecodeBFloat16;
using ::hvdlite::testing::DecodeFloat16;
using ::hvdlite::testing::EncodeBFloat16;
using ::hvdlite::testing::EncodeFloat16;

struct Format {
  std::string name;
  float (*widen)(uint16_t bits);
  uint16_t (*narrow)(float value);
  // The reference conversion.
  double (*decode)(uint16_t bits);
  uint16_t (*encode)(double value);
  uint16_t quiet_bit;  // of a NaN
};

class Float16Formats : public ::testing::TestWithParam<Format> {};

TEST_P(Float16Formats, AllValuesWidenExactlyAndSurviveARoundTrip) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double expected = GetParam().decode(bits);
    const float actual = GetParam().widen(bits);
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << bits;
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << bits;
      // A signalling NaN becomes the quiet NaN with the same payload.
      EXPECT_EQ(GetParam().narrow(actual), bits | GetParam().quiet_bit);
    } else {
      EXPECT_EQ(static_cast<double>(actual), expected) << bits;
      EXPECT_EQ(GetParam().narrow(actual), bits);
    }
  }
}

// float32 values at, just below and just above every rounding boundary of the
// format of `decode`; then a pattern over all exponents.
std::vector<float> CriticalValues(double (*decode)(uint16_t bits)) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const double low = decode(static_cast<uint16_t>(bits));
    const double high = decode(static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const float middle = static_cast<float>((low + high) / 2);
    for (const float value :
         {middle, std::nextafter(middle, 0.0f),
          std::nextafter(middle, infinity),
          std::nextafter(static_cast<float>(low), infinity)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (uint64_t bits = 0; bits < 0x100000000; bits += 65521) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(value)) values.push_back(value);
  }
  for (const float value : {65504.0f, 65519.99f, 65520.0f, 65536.0f, 3.4e38f,
                            3.3961e38f, infinity}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

TEST_P(Float16Formats, NarrowingRoundsToNearestEven) {
  for (const float value : CriticalValues(GetParam().decode)) {
    ASSERT_EQ(GetParam().narrow(value), GetParam().encode(value)) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Float16Formats,
    ::testing::Values(
        Format{"float16", [](uint16_t bits) { return ToFloat(Float16{bits}); },
               [](float value) { return ToFloat16(value).bits; }, DecodeFloat16,
               EncodeFloat16, 0x0200},
        Format{"bfloat16",
               [](uint16_t bits) { return ToFloat(BFloat16{bits}); },
               [](float value) { return ToBFloat16(value).bits; },
               DecodeBFloat16, EncodeBFloat16, 0x0040}),
    [](const ::testing::TestParamInfo<Format>& format) {
      return format.param.name;
    });

TEST(Float16Test, ReferenceMatchesValuesOfTheStandard) {
  EXPECT_EQ(EncodeFloat16(1.0), 0x3c00);
  EXPECT_EQ(EncodeFloat16(-2.0), 0xc000);
  EXPECT_EQ(EncodeFloat16(65504.0), 0x7bff);
  EXPECT_EQ(EncodeFloat16(65520.0), 0x7c00);
  EXPECT_EQ(EncodeFloat16(0x1p-24), 0x0001);
  EXPECT_EQ(EncodeFloat16(0x1p-25), 0x0000);  // a tie, to even
  EXPECT_EQ(EncodeFloat16(0x1.8p-24), 0x0002);
  EXPECT_EQ(EncodeFloat16(0x1p-14), 0x0400);
  EXPECT_EQ(EncodeBFloat16(1.0), 0x3f80);
  EXPECT_EQ(EncodeBFloat16(1e40), 0x7f80);
}

TEST(Float16Test, NansStayQuietWithTheirSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ToFloat16(nan).bits, 0x7e00);
  EXPECT_EQ(ToFloat16(-nan).bits, 0xfe00);
  EXPECT_EQ(ToBFloat16(nan).bits, 0x7fc0);
  EXPECT_EQ(ToBFloat16(-nan).bits, 0xffc0);
  // The payload has only bits that the conversion drops.
  const float low_payload = std::bit_cast<float>(uint32_t{0x7f800001});
  EXPECT_EQ(ToFloat16(low_payload).bits, 0x7e00);
  EXPECT_EQ(ToBFloat16(low_payload).bits, 0x7fc0);
  const float all_payload = std::bit_cast<float>(uint32_t{0x7fffffff});
  EXPECT_EQ(ToFloat16(all_payload).bits, 0x7fff);
  EXPECT_EQ(ToBFloat16(all_payload).bits, 0x7fff);
}

}  // namespace
}  // namespace hvdlite::collective
