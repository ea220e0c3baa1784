// The C++ type of the elements of each data type, for loops over them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Conversions from float32 round to nearest, ties to even; too large numbers
// become infinite, NaNs become (or stay) quiet and keep their sign and the
// upper part of their payload. Those to float32 are exact. There are no
// branches, so that loops over them vectorise, and no step has a subnormal
// float32 as its operand or result unless the value itself is one, so that
// flush-to-zero modes do no harm to binary16.

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct Float16 {
  uint16_t bits;
};

// The upper half of a binary32: 8 bits of exponent, 7 of mantissa.
struct BFloat16 {
  uint16_t bits;
};

inline float ToFloat(Float16 value) {
  constexpr uint32_t kExponent = 0x1fu << 23;       // at float32's place
  constexpr uint32_t kRebias = (127u - 15u) << 23;  // of the exponent
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t magnitude = uint32_t{value.bits & 0x7fffu} << 13;
  const uint32_t exponent = magnitude & kExponent;
  const uint32_t normal = magnitude + kRebias;
  const uint32_t infinite_or_nan = magnitude + 2 * kRebias;
  // The mantissa m of a subnormal: (2^-14 + m * 2^-24) - 2^-14.
  const uint32_t subnormal = std::bit_cast<uint32_t>(
      std::bit_cast<float>(normal + (1u << 23)) - 0x1p-14f);
  const uint32_t finite = exponent == 0 ? subnormal : normal;
  return std::bit_cast<float>(
      sign | (exponent == kExponent ? infinite_or_nan : finite));
}

inline Float16 ToFloat16(float value) {
  constexpr uint32_t kInfinity = 0xffu << 23;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Half a unit in the last place is added, less a bit if that place is even;
  // a carry out of the mantissa does right by the exponent.
  const uint32_t normal =
      (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1)) >>
      13;
  // Below 2^-14: adding 0.5 makes the addition itself round at 2^-24.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<uint32_t>(0.5f);
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  const uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  const uint32_t large = magnitude > kInfinity ? nan : 0x7c00u;
  return Float16{static_cast<uint16_t>(
      sign | (magnitude >= (143u << 23) ? large : finite))};
}

inline float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

inline BFloat16 ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7fffffffu) > (0xffu << 23);
  return BFloat16{static_cast<uint16_t>(is_nan ? nan : rounded)};
}

// The bits of the number with `kMantissa` bits of mantissa, 15 - kMantissa of
// exponent and that bias which is nearest to `value`, ties to even. By way of
// float32 it could be rounded twice: first to a tie, then away from `value`.
// Otherwise as the conversions from float32 (see above).
template <int kMantissa, int kBias>
uint16_t RoundTo16Bits(double value) {
  constexpr int kShift = 52 - kMantissa;
  constexpr uint64_t kInfinity64 = uint64_t{0x7ff} << 52;
  constexpr uint64_t kInfinity16 = uint64_t{2 * kBias + 1} << kMantissa;
  constexpr uint64_t kRebias = uint64_t{1023 - kBias} << 52;
  constexpr uint64_t kSmallestNormal = uint64_t{1023 - kBias + 1} << 52;
  constexpr uint64_t kTooLarge = uint64_t{1023 + kBias + 1} << 52;
  // Its last place is that of the subnormal 16-bit numbers.
  constexpr uint64_t kSubnormalRounder = uint64_t{1023 + kShift + 1 - kBias}
                                         << 52;

  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits >> 48) & 0x8000u;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  // Half a unit in the last place is added, less a bit if that place is even;
  // a carry out of the mantissa does right by the exponent.
  const uint64_t half_less_a_bit = (uint64_t{1} << (kShift - 1)) - 1;
  const uint64_t normal =
      (magnitude - kRebias + half_less_a_bit + ((magnitude >> kShift) & 1)) >>
      kShift;
  const uint64_t subnormal =
      std::bit_cast<uint64_t>(std::bit_cast<double>(magnitude) +
                              std::bit_cast<double>(kSubnormalRounder)) -
      kSubnormalRounder;
  const uint64_t nan = kInfinity16 | uint64_t{1} << (kMantissa - 1) |
                       ((magnitude >> kShift) & ((1u << kMantissa) - 1));
  const uint64_t finite = magnitude < kSmallestNormal ? subnormal : normal;
  const uint64_t large = magnitude > kInfinity64 ? nan : kInfinity16;
  return static_cast<uint16_t>(sign |
                               (magnitude >= kTooLarge ? large : finite));
}

inline Float16 Float16FromDouble(double value) {
  return Float16{RoundTo16Bits<10, 15>(value)};
}

inline BFloat16 BFloat16FromDouble(double value) {
  return BFloat16{RoundTo16Bits<7, 127>(value)};
}

// Any byte that is not 0 is true.
struct Bool {
  uint8_t byte;
};

// Elements are widened to the type that is computed with, and narrowed again.
template <typename T>
T Widen(T value) {
  return value;
}
inline float Widen(Float16 value) { return ToFloat(value); }
inline float Widen(BFloat16 value) { return ToFloat(value); }
inline bool Widen(Bool value) { return value.byte != 0; }

template <typename T>
using Wide = decltype(Widen(T{}));

template <typename T>
T Narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(value);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(value)};
  } else {
    return value;
  }
}

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<Wide<T>>;

// Calls `visitor` with a value of the element type.
template <typename Visitor>
void VisitElementType(DataType dtype, Visitor visitor) {
  switch (dtype) {
    case DataType::kFloat32:
      return visitor(float{});
    case DataType::kFloat64:
      return visitor(double{});
    case DataType::kFloat16:
      return visitor(Float16{});
    case DataType::kBFloat16:
      return visitor(BFloat16{});
    case DataType::kInt32:
      return visitor(int32_t{});
    case DataType::kInt64:
      return visitor(int64_t{});
    case DataType::kUint8:
      return visitor(uint8_t{});
    case DataType::kInt8:
      return visitor(int8_t{});
    case DataType::kBool:
      return visitor(Bool{});
  }
}

// The same, of a float type; does nothing for the others.
template <typename Visitor>
void VisitFloatType(DataType dtype, Visitor visitor) {
  VisitElementType(dtype, [&](auto element) {
    if constexpr (kIsFloat<decltype(element)>) visitor(element);
  });
}

}  // namespace hvdlite::collective
