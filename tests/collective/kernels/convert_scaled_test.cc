#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "collective/kernels/reduction_kernels.h"
#include "tests/collective/kernels/each_target.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {
namespace {

using collective::ConvertScaled;

constexpr double kConvertInfinity = std::numeric_limits<double>::infinity();
constexpr double kConvertNan = std::numeric_limits<double>::quiet_NaN();
constexpr DataType kConvertTypes[] = {DataType::kFloat32, DataType::kFloat64,
                                      DataType::kFloat16, DataType::kBFloat16};

// The expected element, computed in double.
std::vector<std::byte> Reference(DataType from, DataType to, double factor,
                                 double value) {
  const bool in_double = from == DataType::kFloat64 || to == DataType::kFloat64;
  const double product =
      in_double
          ? value * factor
          : double{static_cast<float>(value) * static_cast<float>(factor)};
  return Encode(to, {product});
}

std::vector<std::byte> Convert(DataType from, DataType to, double factor,
                               const std::vector<std::byte>& in) {
  std::vector<std::byte> out(in.size() / SizeOf(from) * SizeOf(to));
  ConvertScaled(from, to, factor, in, absl::MakeSpan(out));
  return out;
}

// Whether the bytes are the element, or both are NaN with the same sign.
bool SameElement(DataType dtype, absl::Span<const std::byte> got,
                 absl::Span<const std::byte> expected) {
  if (got == expected) return true;
  const double a = Decode(dtype, got)[0];
  const double b = Decode(dtype, expected)[0];
  return std::isnan(a) && std::isnan(b) && std::signbit(a) == std::signbit(b);
}

void ExpectConversion(DataType from, DataType to, double factor,
                      const std::vector<double>& values) {
  const std::vector<std::byte> in = Encode(from, values);
  const std::vector<double> exact = Decode(from, in);
  const std::vector<std::byte> out = Convert(from, to, factor, in);
  const size_t bytes = SizeOf(to);
  for (size_t i = 0; i < exact.size(); ++i) {
    const std::vector<std::byte> expected =
        Reference(from, to, factor, exact[i]);
    const auto got = absl::MakeConstSpan(out).subspan(i * bytes, bytes);
    ASSERT_TRUE(SameElement(to, got, expected))
        << exact[i] << " * " << factor << " from " << std::string(NameOf(from))
        << " became " << Decode(to, got)[0] << " of " << std::string(NameOf(to))
        << ", not " << Decode(to, expected)[0];
  }
}

// Floats of all magnitudes of the 16-bit types and slightly beyond.
std::vector<double> RandomValues(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& value : values) {
    const int exponent = static_cast<int>(random() % 300) - 160;
    value = std::ldexp(1.0 + random() * 0x1p-32,
                       random() % 2 == 0 ? exponent : exponent / 6);
    if (random() % 2 == 0) value = -value;
  }
  return values;
}

class ConvertScaledTest : public EachTargetTest {};

TEST_P(ConvertScaledTest, EveryPairOfFloatTypesMatchesTheReference) {
  for (const DataType from : kConvertTypes) {
    for (const DataType to : kConvertTypes) {
      for (const double factor : {1.0, 0.25, -3.0, 1 / 3.0}) {
        ExpectConversion(from, to, factor, RandomValues(3000, 1));
      }
    }
  }
}

TEST_P(ConvertScaledTest, SpecialValuesKeepTheirMeaning) {
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      kConvertInfinity,
                                      -kConvertInfinity,
                                      kConvertNan,
                                      -kConvertNan,
                                      65504,
                                      65519.99,
                                      65520,
                                      -65536,
                                      0x1p-24,
                                      0x1p-25,
                                      0x1.8p-25,
                                      0x1p-26,
                                      0x1p-133,
                                      0x1p-134,
                                      0x1.8p-134,
                                      0x1p-149,
                                      0x1.fep127,
                                      0x1.fffffep127,
                                      -0x1.fefffep127,
                                      0x1.ffcp-15,
                                      0x1.ffep-15,
                                      0x1.fffp-15};
  for (const DataType from : kConvertTypes) {
    for (const DataType to : kConvertTypes) {
      ExpectConversion(from, to, 1, values);
      ExpectConversion(from, to, 0.5, values);
    }
  }
}

// For every 16-bit number: the number, the tie to the next one, and the
// neighbours of that tie.
TEST_P(ConvertScaledTest, TiesGoToEvenAndTheirNeighboursToTheNearest) {
  for (const DataType to : {DataType::kFloat16, DataType::kBFloat16}) {
    std::vector<double> values;
    for (uint32_t bits = 0; bits < 0x7c00;
         bits += to == DataType::kFloat16 ? 1 : 3) {
      const bool is_half = to == DataType::kFloat16;
      const auto decode = is_half ? DecodeFloat16 : DecodeBFloat16;
      const double value = decode(static_cast<uint16_t>(bits));
      const double tie = (value + decode(static_cast<uint16_t>(bits + 1))) / 2;
      for (const double near :
           {value, tie, std::nextafter(tie, kConvertInfinity),
            std::nextafter(tie, -kConvertInfinity)}) {
        if (std::isfinite(near)) values.insert(values.end(), {near, -near});
      }
    }
    // Neighbours of a tie differ from it by less than float32 resolves. Rounded
    // twice, they would be rounded to the wrong side.
    ExpectConversion(DataType::kFloat64, to, 1, values);
    ExpectConversion(DataType::kFloat32, to, 1, values);
  }
}

TEST_P(ConvertScaledTest, NanKeepsTheUpperPartOfItsPayload) {
  const uint64_t nan64 = 0xfff5'5000'0000'0001;
  const float nan32 = std::bit_cast<float>(0xffaa'8001u);
  std::vector<std::byte> in(8);
  std::memcpy(in.data(), &nan64, 8);
  const auto bits = [](const std::vector<std::byte>& bytes) {
    uint16_t value;
    std::memcpy(&value, bytes.data(), 2);
    return value;
  };
  EXPECT_EQ(bits(Convert(DataType::kFloat64, DataType::kFloat16, 1, in)),
            0xff54);
  EXPECT_EQ(bits(Convert(DataType::kFloat64, DataType::kBFloat16, 1, in)),
            0xffea);
  in.resize(4);
  std::memcpy(in.data(), &nan32, 4);
  EXPECT_EQ(bits(Convert(DataType::kFloat32, DataType::kFloat16, 1, in)),
            0xff54);
  EXPECT_EQ(bits(Convert(DataType::kFloat32, DataType::kBFloat16, 1, in)),
            0xffea);
}

TEST_P(ConvertScaledTest, EveryLengthAndOffsetIsConvertedWithoutOverrun) {
  const std::vector<double> values = RandomValues(320, 7);
  for (const DataType from : kConvertTypes) {
    for (const DataType to : kConvertTypes) {
      const size_t from_bytes = SizeOf(from);
      const size_t to_bytes = SizeOf(to);
      const std::vector<std::byte> in = Encode(from, values);
      const std::vector<std::byte> all = Convert(from, to, 0.5, in);
      for (size_t count = 0; count <= 300; ++count) {
        const size_t skip = count % 17;        // elements of `in`
        const size_t begin = (count / 3) % 9;  // element of `out`
        std::vector<std::byte> out((begin + count + 8) * to_bytes,
                                   std::byte{0x5a});
        std::vector<std::byte> expected = out;
        std::memcpy(expected.data() + begin * to_bytes,
                    all.data() + skip * to_bytes, count * to_bytes);
        ConvertScaled(
            from, to, 0.5,
            absl::MakeConstSpan(in).subspan(skip * from_bytes,
                                            count * from_bytes),
            absl::MakeSpan(out).subspan(begin * to_bytes, count * to_bytes));
        ASSERT_TRUE(out == expected)
            << count << " elements from " << std::string(NameOf(from)) << " to "
            << std::string(NameOf(to));
      }
    }
  }
}

TEST_P(ConvertScaledTest, EqualTypesAreCopiedAndScaledInPlaceToo) {
  std::vector<std::byte> bytes = Encode(DataType::kInt32, {7, -7, 4});
  EXPECT_EQ(Convert(DataType::kInt32, DataType::kInt32, 1, bytes), bytes);
  ConvertScaled(DataType::kInt32, DataType::kInt32, 0.5, bytes,
                absl::MakeSpan(bytes));
  EXPECT_EQ(bytes, Encode(DataType::kInt32, {3, -3, 2}));
}

TEST_P(ConvertScaledTest, EverySixteenBitNumberIsConverted) {
  std::vector<std::byte> in(2 * 0x10000);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t element = static_cast<uint16_t>(bits);
    std::memcpy(&in[2 * bits], &element, 2);
  }
  for (const DataType from : {DataType::kFloat16, DataType::kBFloat16}) {
    const std::vector<double> exact = Decode(from, in);
    for (const DataType to : kConvertTypes) {
      if (from == to) continue;
      for (const double factor : {1.0, 1 / 3.0}) {
        const std::vector<std::byte> out = Convert(from, to, factor, in);
        const size_t bytes = SizeOf(to);
        for (size_t i = 0; i < exact.size(); ++i) {
          const auto got = absl::MakeConstSpan(out).subspan(i * bytes, bytes);
          if (std::isnan(exact[i])) {
            ASSERT_TRUE(std::isnan(Decode(to, got)[0])) << i;
          } else {
            ASSERT_EQ(
                got, absl::MakeConstSpan(Reference(from, to, factor, exact[i])))
                << i << " from " << std::string(NameOf(from)) << " to "
                << std::string(NameOf(to));
          }
        }
      }
    }
  }
}

TEST_P(ConvertScaledTest, StreamedResultsAreTheSame) {
  const std::vector<double> values = RandomValues(5000, 9);
  for (const DataType from : kConvertTypes) {
    for (const DataType to : kConvertTypes) {
      const std::vector<std::byte> in = Encode(from, values);
      for (size_t skip = 0; skip < 64 / SizeOf(to); ++skip) {
        const size_t count = values.size() - skip;
        const auto part = absl::MakeConstSpan(in).subspan(skip * SizeOf(from));
        std::vector<std::byte> cached(values.size() * SizeOf(to));
        std::vector<std::byte> streamed = cached;
        const auto to_part = [&](std::vector<std::byte>& out) {
          return absl::MakeSpan(out).subspan(skip * SizeOf(to),
                                             count * SizeOf(to));
        };
        ConvertScaled(from, to, 0.5, part, to_part(cached));
        ConvertScaled(from, to, 0.5, part, to_part(streamed),
                      collective::StoreHint::kStreaming);
        ASSERT_TRUE(streamed == cached)
            << std::string(NameOf(from)) << " to " << std::string(NameOf(to));
      }
    }
  }
}

HVDLITE_INSTANTIATE_FOR_EACH_TARGET(ConvertScaledTest);

}  // namespace
}  // namespace hvdlite::testing
