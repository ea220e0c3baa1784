// Conversion of float64 to 16-bit floating-point numbers with one rounding.
#pragma once

#include <bit>
#include <cstdint>

#include "collective/kernels/float16.h"

namespace hvdlite::collective {

// The bits of the number with `kMantissa` bits of mantissa, 15 - kMantissa of
// exponent and that bias which is nearest to `value`, ties to even. By way of
// float32 it could be rounded twice: first to a tie, then away from `value`.
// Otherwise as the conversions from float32 (see float16.h).
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

}  // namespace hvdlite::collective
