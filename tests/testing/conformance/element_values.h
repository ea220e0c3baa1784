// Elements of every data type as doubles, written for clarity. Tests compare
// with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/elements.h"

namespace hvdlite::testing {

// Rounds to a binary floating-point format of at most 16 bits, to nearest, ties
// to even. `mantissa_bits`: bits after the binary point; `min_exponent` and
// `max_exponent`: the exponents of normal numbers. IEEE 754-2008, 4.3.1 and
// 7.4.
inline uint16_t EncodeSmallFloat(double value, int mantissa_bits,
                                 int min_exponent, int max_exponent) {
  const int exponent_ones = max_exponent - min_exponent + 2;
  const uint16_t infinity =
      static_cast<uint16_t>(exponent_ones << mantissa_bits);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | infinity | 1 << (mantissa_bits - 1));
  }
  const double magnitude = std::abs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  const int exponent = std::max(std::ilogb(magnitude), min_exponent);
  // The value in units of the last place. This is exact, since only the
  // exponent changes.
  const double units =
      std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  // The leading bit of a normal number adds the 1 that its biased exponent
  // needs.
  const double bits =
      std::ldexp(exponent - min_exponent, mantissa_bits) + units;
  return static_cast<uint16_t>(
      sign | static_cast<int>(std::min<double>(bits, infinity)));
}

inline double DecodeSmallFloat(uint16_t bits, int mantissa_bits,
                               int min_exponent, int max_exponent) {
  const int exponent_ones = max_exponent - min_exponent + 2;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude;
  if (exponent == exponent_ones) {
    magnitude = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, min_exponent - mantissa_bits);
  } else {
    magnitude = std::ldexp((1 << mantissa_bits) + mantissa,
                           min_exponent + exponent - 1 - mantissa_bits);
  }
  return std::copysign(magnitude, (bits & 0x8000) != 0 ? -1.0 : 1.0);
}

inline uint16_t EncodeFloat16(double value) {
  return EncodeSmallFloat(value, 10, -14, 15);
}
inline double DecodeFloat16(uint16_t bits) {
  return DecodeSmallFloat(bits, 10, -14, 15);
}
inline uint16_t EncodeBFloat16(double value) {
  return EncodeSmallFloat(value, 7, -126, 127);
}
inline double DecodeBFloat16(uint16_t bits) {
  return DecodeSmallFloat(bits, 7, -126, 127);
}

// The float type of a complex number's parts; for other types, the type itself.
inline collective::DataType PartOf(collective::DataType dtype) {
  if (dtype == collective::DataType::kComplex64) {
    return collective::DataType::kFloat32;
  }
  if (dtype == collective::DataType::kComplex128) {
    return collective::DataType::kFloat64;
  }
  return dtype;
}

// The bytes of values.size() elements. Values must be in the type's range. A
// complex type has v + 2vi for a value v: operations that treat both parts
// equally round both equally, and the parts cannot be confused.
inline std::vector<std::byte> Encode(collective::DataType dtype,
                                     const std::vector<double>& values) {
  if (PartOf(dtype) != dtype) {
    std::vector<double> parts;
    for (const double value : values) {
      parts.insert(parts.end(), {value, 2 * value});
    }
    return Encode(PartOf(dtype), parts);
  }
  const size_t element_bytes = collective::SizeOf(dtype);
  std::vector<std::byte> bytes(values.size() * element_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto put = [&](auto element) {
      std::memcpy(&bytes[i * element_bytes], &element, sizeof(element));
    };
    const double value = values[i];
    collective::VisitElementType(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_same_v<T, collective::Float16>) {
        put(EncodeFloat16(value));
      } else if constexpr (std::is_same_v<T, collective::BFloat16>) {
        put(EncodeBFloat16(value));
      } else if constexpr (std::is_same_v<T, collective::Bool>) {
        put(static_cast<uint8_t>(value != 0));
      } else {
        put(static_cast<T>(value));
      }
    });
  }
  return bytes;
}

// The elements as doubles (integers beyond 2^53 are rounded). Complex ones must
// have the form that Encode() makes.
inline std::vector<double> Decode(collective::DataType dtype,
                                  absl::Span<const std::byte> bytes) {
  if (PartOf(dtype) != dtype) {
    const std::vector<double> parts = Decode(PartOf(dtype), bytes);
    std::vector<double> values;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      const bool both_nan = std::isnan(parts[i]) && std::isnan(parts[i + 1]);
      EXPECT_TRUE(parts[i + 1] == 2 * parts[i] || both_nan)
          << parts[i] << " + " << parts[i + 1] << " i";
      values.push_back(parts[i]);
    }
    return values;
  }
  const size_t element_bytes = collective::SizeOf(dtype);
  std::vector<double> values(bytes.size() / element_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto get = [&](auto element) {
      std::memcpy(&element, &bytes[i * element_bytes], sizeof(element));
      return element;
    };
    collective::VisitElementType(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_same_v<T, collective::Float16>) {
        values[i] = DecodeFloat16(get(uint16_t{}));
      } else if constexpr (std::is_same_v<T, collective::BFloat16>) {
        values[i] = DecodeBFloat16(get(uint16_t{}));
      } else if constexpr (std::is_same_v<T, collective::Bool>) {
        values[i] = get(uint8_t{});
      } else {
        values[i] = static_cast<double>(get(T{}));
      }
    });
  }
  return values;
}

}  // namespace hvdlite::testing
