#include "collective/reduction_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "collective/element_types.h"
#include "collective/float16.h"
#include "collective/float16_from_double.h"

namespace hvdlite::collective {
namespace {

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

template <ReduceOp op, typename T>
void ReduceElements(const T* __restrict in, T* __restrict inout, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    inout[i] = Narrow<T>(Combine<op, Wide<T>>(Widen(inout[i]), Widen(in[i])));
  }
}

template <typename T>
T Scale(T value, double factor) {
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

// `in` may be `out`: no __restrict.
template <typename T>
void ScaleElements(double factor, const T* in, T* out, size_t count) {
  if constexpr (std::is_same_v<T, double>) {
    for (size_t i = 0; i < count; ++i) out[i] = in[i] * factor;
  } else if constexpr (std::is_same_v<Wide<T>, float>) {
    const float factor32 = static_cast<float>(factor);
    for (size_t i = 0; i < count; ++i) {
      out[i] = Narrow<T>(Widen(in[i]) * factor32);
    }
  } else if constexpr (std::is_same_v<T, Bool>) {
    for (size_t i = 0; i < count; ++i) {
      out[i] = Bool{static_cast<uint8_t>(
          Scale<int32_t>(Widen(in[i]) ? 1 : 0, factor) != 0)};
    }
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = Scale<T>(in[i], factor);
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

template <typename From, typename To>
void ConvertElements(double factor, const From* __restrict in,
                     To* __restrict out, size_t count) {
  using Computed = decltype(Wide<From>{} * Wide<To>{});
  const Computed rounded_factor = static_cast<Computed>(factor);
  for (size_t i = 0; i < count; ++i) {
    out[i] = RoundTo<To>(static_cast<Computed>(Widen(in[i])) * rounded_factor);
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

}  // namespace

void Reduce(ReduceOp op, DataType dtype, absl::Span<const std::byte> in,
            absl::Span<std::byte> inout) {
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    VisitReduceOp(op, [&](auto constant) {
      ReduceElements<constant.value, T>(reinterpret_cast<const T*>(in.data()),
                                        reinterpret_cast<T*>(inout.data()),
                                        inout.size() / sizeof(T));
    });
  });
}

void CopyScaled(DataType dtype, double factor, absl::Span<const std::byte> in,
                absl::Span<std::byte> out) {
  if (out.empty()) return;
  if (factor == 1) {
    if (in.data() != out.data()) {
      std::memcpy(out.data(), in.data(), out.size());
    }
    return;
  }
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    ScaleElements<T>(factor, reinterpret_cast<const T*>(in.data()),
                     reinterpret_cast<T*>(out.data()), out.size() / sizeof(T));
  });
}

void ConvertScaled(DataType from, DataType to, double factor,
                   absl::Span<const std::byte> in, absl::Span<std::byte> out) {
  if (from == to) return CopyScaled(from, factor, in, out);
  VisitFloatType(from, [&](auto in_element) {
    using From = decltype(in_element);
    VisitFloatType(to, [&](auto out_element) {
      using To = decltype(out_element);
      ConvertElements(factor, reinterpret_cast<const From*>(in.data()),
                      reinterpret_cast<To*>(out.data()),
                      out.size() / sizeof(To));
    });
  });
}

void FillNeutral(ReduceOp op, DataType dtype, absl::Span<std::byte> out) {
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    VisitReduceOp(op, [&](auto constant) {
      std::fill_n(reinterpret_cast<T*>(out.data()), out.size() / sizeof(T),
                  Neutral<constant.value, T>());
    });
  });
}

}  // namespace hvdlite::collective
