// Loops that the compiler vectorises. Included once for each target.

// clang-format off
#if defined(HVDLITE_COLLECTIVE_KERNELS_PLAIN_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
// clang-format on
#ifdef HVDLITE_COLLECTIVE_KERNELS_PLAIN_LOOPS_INL_H_
#undef HVDLITE_COLLECTIVE_KERNELS_PLAIN_LOOPS_INL_H_
#else
#define HVDLITE_COLLECTIVE_KERNELS_PLAIN_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/elements.h"
#include "collective/kernels/reduction_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace hvdlite::collective::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A memcpy past the cache. Call FlushStream() afterwards.
inline void StreamBytes(const std::byte* in, std::byte* out, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (bytes >= kMinStreamedBytes && HWY_TARGET != HWY_SCALAR) {
    i = BytesToAlignment(out, lanes);
    std::memcpy(out, in, i);
    const uint8_t* from = reinterpret_cast<const uint8_t*>(in);
    uint8_t* to = reinterpret_cast<uint8_t*>(out);
    for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
      const auto v0 = hn::LoadU(d, from + i);
      const auto v1 = hn::LoadU(d, from + i + lanes);
      const auto v2 = hn::LoadU(d, from + i + 2 * lanes);
      const auto v3 = hn::LoadU(d, from + i + 3 * lanes);
      hn::Stream(v0, d, to + i);
      hn::Stream(v1, d, to + i + lanes);
      hn::Stream(v2, d, to + i + 2 * lanes);
      hn::Stream(v3, d, to + i + 3 * lanes);
    }
  }
  std::memcpy(out + i, in + i, bytes - i);
}

// Works in blocks that fit into the first-level cache. An output may be an
// input: it is written after all inputs of the block were read. Call
// FlushStream() after kStreaming.
template <ReduceOp op, typename T>
void ReducePlainly(Factor factor, absl::Span<const std::byte* const> inputs,
                   absl::Span<std::byte* const> outputs, size_t count,
                   StoreHint hint) {
  constexpr size_t kBlock = 8192 / sizeof(Wide<T>);
  alignas(64) Wide<T> combined[kBlock];
  alignas(64) T results[kBlock];
  const double input_scale =
      kScalesInputs<op, T>
          ? ScaleOfInputs(factor.value(), static_cast<double>(inputs.size()))
          : 1;
  const FactorOf<T> rounded_factor = static_cast<FactorOf<T>>(
      (kIsFloat<T> ? factor.value() : factor.scale) / input_scale);
  const auto load = [input_scale](T element) {
    if constexpr (kScalesInputs<op, T>) {
      return Widen(element) * static_cast<Wide<T>>(input_scale);
    } else {
      return Widen(element);
    }
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    const T* in = reinterpret_cast<const T*>(inputs[0]) + begin;
    for (size_t i = 0; i < size; ++i) combined[i] = load(in[i]);
    for (size_t k = 1; k < inputs.size(); ++k) {
      in = reinterpret_cast<const T*>(inputs[k]) + begin;
      for (size_t i = 0; i < size; ++i) {
        combined[i] = Combine<op, Wide<T>>(combined[i], load(in[i]));
      }
    }
    if constexpr (!kIsFloat<T>) {
      if (factor.divisor != 1) {
        for (size_t i = 0; i < size; ++i) {
          combined[i] = DivideInteger(combined[i], factor.divisor);
        }
      }
    }
    if (rounded_factor == 1) {
      for (size_t i = 0; i < size; ++i) results[i] = Narrow<T>(combined[i]);
    } else {
      for (size_t i = 0; i < size; ++i) {
        results[i] = ScaleAndNarrow<T>(combined[i], rounded_factor);
      }
    }
    for (std::byte* const output : outputs) {
      std::byte* const out = output + begin * sizeof(T);
      const std::byte* const bytes = reinterpret_cast<std::byte*>(results);
      if (hint == StoreHint::kStreaming &&
          !absl::c_linear_search(inputs, output)) {
        StreamBytes(bytes, out, size * sizeof(T));
      } else {
        std::memcpy(out, bytes, size * sizeof(T));
      }
    }
  }
}

template <typename From, typename To>
void ConvertPlainly(double factor, const From* __restrict in,
                    To* __restrict out, size_t count) {
  using Computed = decltype(Wide<From>{} * Wide<To>{});
  const Computed rounded_factor = static_cast<Computed>(factor);
  for (size_t i = 0; i < count; ++i) {
    out[i] = RoundTo<To>(static_cast<Computed>(Widen(in[i])) * rounded_factor);
  }
}

// Whether no element is infinite or NaN, whose exponents are all ones.
template <typename Bits, Bits exponent>
bool AllFiniteBits(const Bits* in, size_t count) {
  const hn::ScalableTag<Bits> d;
  const size_t lanes = hn::Lanes(d);
  // Tested only after each block: such elements are rare.
  const size_t block = 256 * lanes;
  const auto ones = hn::Set(d, exponent);
  const auto exponents = [&](size_t i) {
    return hn::And(hn::LoadU(d, in + i), ones);
  };
  size_t i = 0;
  while (i + 4 * lanes <= count) {
    auto most0 = hn::Zero(d);
    auto most1 = most0;
    const size_t end = std::min(i + block, count);
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      most0 = hn::Max(most0, hn::Max(exponents(i), exponents(i + lanes)));
      most1 = hn::Max(
          most1, hn::Max(exponents(i + 2 * lanes), exponents(i + 3 * lanes)));
    }
    if (!hn::AllFalse(d, hn::Eq(hn::Max(most0, most1), ones))) return false;
  }
  for (; i < count; ++i) {
    if ((in[i] & exponent) == exponent) return false;
  }
  return true;
}

}  // namespace hvdlite::collective::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
