// What is done to single elements: the loops over arrays are built from it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/element_types.h"

namespace hvdlite::collective {

template <ReduceOp op, typename T>
T Combine(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    constexpr bool kOr = op == ReduceOp::kSum || op == ReduceOp::kMax;
    return kOr ? (a | b) : (a & b);
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // wraps without overflow
    const Unsigned x = static_cast<Unsigned>(a);
    const Unsigned y = static_cast<Unsigned>(b);
    if constexpr (op == ReduceOp::kSum) return static_cast<T>(x + y);
    if constexpr (op == ReduceOp::kProduct) return static_cast<T>(x * y);
    if constexpr (op == ReduceOp::kMin) return a < b ? a : b;
    if constexpr (op == ReduceOp::kMax) return a > b ? a : b;
  } else {
    if constexpr (op == ReduceOp::kSum) return a + b;
    if constexpr (op == ReduceOp::kProduct) return a * b;
    if constexpr (op == ReduceOp::kMin) return (a < b) | (a != a) ? a : b;
    if constexpr (op == ReduceOp::kMax) return (a > b) | (a != a) ? a : b;
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

template <typename T>
T ScaleInteger(T value, double factor) {
  double scaled = static_cast<double>(value) * factor;
  // Twice what the rounding of the factor and of the product may amount to: so
  // 49 * (1/49.0), which is a little below 1, counts as 1.
  const double nearest = std::nearbyint(scaled);
  if (std::abs(nearest - scaled) <= std::abs(scaled) * 0x1p-51) {
    scaled = nearest;
  }
  using Limits = std::numeric_limits<T>;
  // -lowest is a power of two (or 0), hence exact; max need not be.
  constexpr double kEnd = 2.0 * static_cast<double>(Limits::max() / 2 + 1);
  if (!(scaled > static_cast<double>(Limits::lowest()))) {
    return std::isnan(scaled) ? T{0} : Limits::lowest();
  }
  return scaled >= kEnd ? Limits::max() : static_cast<T>(scaled);
}

// What factors are rounded to before elements are multiplied by them.
template <typename T>
using FactorOf =
    std::conditional_t<std::is_same_v<Wide<T>, float>, float, double>;

// factor * value as an element.
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

// Rounds what was computed in float or double to an element.
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

// Of the outputs of a loop that are stored past the cache. Below, the stores
// that precede the first aligned vector would be too large a part.
inline constexpr size_t kMinStreamedBytes = 4096;

// Bytes from `address` to the next multiple of `alignment`.
inline size_t BytesToAlignment(const std::byte* address, size_t alignment) {
  const size_t past = reinterpret_cast<uintptr_t>(address) % alignment;
  return past == 0 ? 0 : alignment - past;
}

// Outputs that are no inputs (those are in the cache anyway) and have the same
// alignment as the first of them: after `peeled_bytes` bytes they are aligned.
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

  uint64_t mask = 0;  // bit j: output j, of the first 64
  size_t peeled_bytes = 0;
};

}  // namespace hvdlite::collective
