// Elements: the C++ type of each data type, conversions, and operations on
// single elements. The loops over arrays use them.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Conversions from float32 round to nearest, ties to even. Numbers that are too
// large become infinite. NaNs become (or stay) quiet, and keep their sign and
// the upper part of their payload. Conversions to float32 are exact.
//
// There are no branches, so that loops vectorise. No step has a subnormal
// float32 as operand or result unless the value itself is one, so flush-to-zero
// modes do not affect binary16.

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct Float16 {
  uint16_t bits;
};

// The upper half of a binary32: 8 bits of exponent, 7 of mantissa.
struct BFloat16 {
  uint16_t bits;
};

inline float ToFloat(Float16 value) {
  constexpr uint32_t kExponent = 0x1fu << 23;       // at the place in float32
  constexpr uint32_t kRebias = (127u - 15u) << 23;  // for the exponent
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
  // Adds half a unit in the last place, minus one bit if that place is even. A
  // carry out of the mantissa increments the exponent correctly.
  const uint32_t normal =
      (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1)) >>
      13;
  // Below 2^-14: adding 0.5 makes the addition round at 2^-24.
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

// Bits of the nearest number to `value`, ties to even, in a format with
// `kMantissa` bits of mantissa, 15 - kMantissa of exponent and bias kBias. A
// conversion through float32 could round twice: first to a tie, then away from
// `value`. Otherwise like the conversions from float32 (see above).
template <int kMantissa, int kBias>
uint16_t RoundTo16Bits(double value) {
  constexpr int kShift = 52 - kMantissa;
  constexpr uint64_t kInfinity64 = uint64_t{0x7ff} << 52;
  constexpr uint64_t kInfinity16 = uint64_t{2 * kBias + 1} << kMantissa;
  constexpr uint64_t kRebias = uint64_t{1023 - kBias} << 52;
  constexpr uint64_t kSmallestNormal = uint64_t{1023 - kBias + 1} << 52;
  constexpr uint64_t kTooLarge = uint64_t{1023 + kBias + 1} << 52;
  // Its last place is the last place of subnormal 16-bit numbers.
  constexpr uint64_t kSubnormalRounder = uint64_t{1023 + kShift + 1 - kBias}
                                         << 52;

  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits >> 48) & 0x8000u;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  // Adds half a unit in the last place, minus one bit if that place is even. A
  // carry out of the mantissa increments the exponent correctly.
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

// Any byte except 0 is true.
struct Bool {
  uint8_t byte;
};

// Elements are widened to the type of the computation, and narrowed again.
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

template <size_t... types>
constexpr bool ElementsAreAsTheirRows(std::index_sequence<types...>) {
  const auto is_as_row = [](auto element, const DataTypeTraits& row) {
    using T = decltype(element);
    if (row.kind == NumberKind::kComplex) {
      return kIsFloat<T> && row.bytes == 2 * sizeof(T);
    }
    const NumberKind kind = std::is_same_v<T, Bool> ? NumberKind::kBool
                            : kIsFloat<T>           ? NumberKind::kFloat
                            : std::is_signed_v<T>   ? NumberKind::kSigned
                                                    : NumberKind::kUnsigned;
    return row.bytes == sizeof(T) && row.kind == kind;
  };
  return (is_as_row(std::tuple_element_t<types, ElementTypes>{},
                    kDataTypes[types]) &&
          ...);
}
static_assert(std::tuple_size_v<ElementTypes> == kNumDataTypes);
static_assert(
    ElementsAreAsTheirRows(std::make_index_sequence<kNumDataTypes>()));

// Calls `visitor` with a value of the element type. For complex elements it is
// the type of the parts, of which there are twice as many.
template <typename Visitor>
void VisitElementType(DataType dtype, Visitor visitor) {
  [&]<size_t... types>(std::index_sequence<types...>) {
    (void)((static_cast<size_t>(dtype) == types &&
            (visitor(std::tuple_element_t<types, ElementTypes>{}), true)) ||
           ...);
  }
  (std::make_index_sequence<kNumDataTypes>());
}

// The same for float types; does nothing for others.
template <typename Visitor>
void VisitFloatType(DataType dtype, Visitor visitor) {
  VisitElementType(dtype, [&](auto element) {
    if constexpr (kIsFloat<decltype(element)>) visitor(element);
  });
}

// ---- Operations.

template <ReduceOp op, typename T>
T Combine(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    constexpr bool kOr = op == ReduceOp::kSum || op == ReduceOp::kMax;
    return kOr ? (a | b) : (a & b);
  } else if constexpr (std::is_integral_v<T>) {
    // Wraps around without overflow; narrow types would be promoted to int.
    using Unsigned = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    const auto x = static_cast<Unsigned>(a);
    const auto y = static_cast<Unsigned>(b);
    if constexpr (op == ReduceOp::kSum) return static_cast<T>(x + y);
    if constexpr (op == ReduceOp::kProduct) return static_cast<T>(x * y);
    if constexpr (op == ReduceOp::kMin) return a < b ? a : b;
    if constexpr (op == ReduceOp::kMax) return a > b ? a : b;
  } else {
    if constexpr (op == ReduceOp::kSum) return a + b;
    if constexpr (op == ReduceOp::kProduct) return a * b;
    if constexpr (op == ReduceOp::kMin) return ((a < b) | (a != a)) ? a : b;
    if constexpr (op == ReduceOp::kMax) return ((a > b) | (a != a)) ? a : b;
  }
}

template <ReduceOp op, typename T>
T Neutral() {
  using Limits = std::numeric_limits<Wide<T>>;
  if constexpr (op == ReduceOp::kSum) return Narrow<T>(Wide<T>{0});
  if constexpr (op == ReduceOp::kProduct) return Narrow<T>(Wide<T>{1});
  if constexpr (Limits::has_infinity) {
    return Narrow<T>(op == ReduceOp::kMin ? Limits::infinity()
                                          : -Limits::infinity());
  } else {
    return Narrow<T>(op == ReduceOp::kMin ? Limits::max() : Limits::lowest());
  }
}

// value / divisor, truncated toward zero. `divisor` is positive, and may be out
// of T's range.
template <typename T>
T DivideInteger(T value, int64_t divisor) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(int64_t{value} / divisor);
  } else {
    return static_cast<T>(uint64_t{value} / static_cast<uint64_t>(divisor));
  }
}

template <typename T>
T ScaleInteger(T value, double factor) {
  double scaled = static_cast<double>(value) * factor;
  // Tolerance: twice the rounding error of factor and product. So 49 *
  // (1/49.0), which is slightly below 1, counts as 1.
  const double nearest = std::nearbyint(scaled);
  if (std::abs(nearest - scaled) <= std::abs(scaled) * 0x1p-51) {
    scaled = nearest;
  }
  using Limits = std::numeric_limits<T>;
  // -lowest is a power of two (or 0) and thus exact; max may not be exact.
  constexpr double kEnd = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
  if (!(scaled > static_cast<double>(Limits::lowest()))) {
    return std::isnan(scaled) ? T{0} : Limits::lowest();
  }
  return scaled >= kEnd ? Limits::max() : static_cast<T>(scaled);
}

// The type that factors are rounded to before the multiplication.
template <typename T>
using FactorOf =
    std::conditional_t<std::is_same_v<Wide<T>, float>, float, double>;

// factor * value, as an element.
template <typename T>
T ScaleAndNarrow(Wide<T> value, FactorOf<T> factor) {
  if constexpr (kIsFloat<T>) {
    return Narrow<T>(value * factor);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(
        ScaleInteger<int32_t>(value ? 1 : 0, factor) != 0)};
  } else {
    return ScaleInteger<T>(value, factor);
  }
}

// Rounds a result computed in float or double to an element.
template <typename T>
T RoundTo(float value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return Narrow<T>(value);
  }
}
template <typename T>
T RoundTo(double value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return Float16FromDouble(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16FromDouble(value);
  } else {
    return static_cast<T>(value);
  }
}

// Whether inputs are multiplied by ScaleOfInputs(): only for a type whose range
// is as large as the range of the computation.
template <ReduceOp op, typename T>
inline constexpr bool kScalesInputs =
    op == ReduceOp::kSum && std::is_same_v<T, BFloat16>;

// Calls `visitor` with the operation as an integral constant.
template <typename Visitor>
void VisitReduceOp(ReduceOp op, Visitor visitor) {
  switch (op) {
    case ReduceOp::kSum:
      return visitor(std::integral_constant<ReduceOp, ReduceOp::kSum>{});
    case ReduceOp::kMin:
      return visitor(std::integral_constant<ReduceOp, ReduceOp::kMin>{});
    case ReduceOp::kMax:
      return visitor(std::integral_constant<ReduceOp, ReduceOp::kMax>{});
    case ReduceOp::kProduct:
      return visitor(std::integral_constant<ReduceOp, ReduceOp::kProduct>{});
  }
}

// Minimum size of outputs that are stored past the cache. In smaller ones the
// stores before the first aligned vector would be too large a part.
inline constexpr size_t kMinStreamedBytes = 4096;

// Bytes from `address` to the next multiple of `alignment`.
inline size_t BytesToAlignment(const std::byte* address, size_t alignment) {
  const size_t past = reinterpret_cast<uintptr_t>(address) % alignment;
  return past == 0 ? 0 : alignment - past;
}

// Selects the outputs to store past the cache: those that are not inputs
// (inputs are in the cache anyway) and have the same alignment as the first
// such output. After `peeled_bytes` bytes they are aligned.
struct StreamedOutputs {
  StreamedOutputs(absl::Span<const std::byte* const> inputs,
                  absl::Span<std::byte* const> outputs, size_t bytes,
                  size_t alignment) {
    if (bytes < kMinStreamedBytes) return;
    for (size_t j = 0; j < outputs.size() && j < 64; ++j) {
      if (absl::c_linear_search(inputs, outputs[j])) continue;
      const size_t distance = BytesToAlignment(outputs[j], alignment);
      if (mask == 0) peeled_bytes = distance;
      if (distance == peeled_bytes) mask |= uint64_t{1} << j;
    }
  }

  uint64_t mask = 0;  // bit j: output j; at most 64 outputs
  size_t peeled_bytes = 0;
};

}  // namespace hvdlite::collective
