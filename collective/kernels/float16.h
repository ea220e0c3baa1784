// 16-bit floating-point numbers and their conversion from and to float32.
#pragma once

#include <bit>
#include <cstdint>

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

}  // namespace hvdlite::collective
