#include "collective/kernels/reduction_kernels.h"

// Compiled for the vector units of cluster CPUs, and for the baseline.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/kernels/reduction_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "collective/kernels/elements.h"
#include "collective/kernels/float_loops-inl.h"
#include "collective/kernels/plain_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hvdlite::collective::HWY_NAMESPACE {

template <ReduceOp op, typename From, typename To>
void RunFloatLoop(double factor, absl::Span<const std::byte* const> inputs,
                  absl::Span<std::byte* const> outputs, size_t count,
                  StoreHint hint) {
#if HWY_TARGET != HWY_SCALAR
  FloatLoop<op, From, To, hn::ScalableTag<Wide<From>>>(factor, inputs, outputs)
      .Run(count, hint);
#endif
}

VectorUnit Describe() {
  return {hwy::TargetName(HWY_TARGET), hn::Lanes(hn::ScalableTag<uint8_t>())};
}

void ReduceOnTarget(ReduceOp op, DataType dtype, Factor factor,
                    absl::Span<const std::byte* const> inputs,
                    absl::Span<std::byte* const> outputs, size_t bytes,
                    StoreHint hint) {
  VisitElementType(dtype, [&](auto element) {
    using T = decltype(element);
    VisitReduceOp(op, [&](auto constant) {
      if constexpr (kIsFloat<T> && HWY_TARGET != HWY_SCALAR) {
        RunFloatLoop<constant.value, T, T>(factor.value(), inputs, outputs,
                                           bytes / sizeof(T), hint);
      } else {
        ReducePlainly<constant.value, T>(factor, inputs, outputs,
                                         bytes / sizeof(T), hint);
      }
    });
  });
}

void ConvertOnTarget(DataType from, DataType to, double factor,
                     absl::Span<const std::byte> in, absl::Span<std::byte> out,
                     StoreHint hint) {
  VisitFloatType(from, [&](auto in_element) {
    using From = decltype(in_element);
    VisitFloatType(to, [&](auto out_element) {
      using To = decltype(out_element);
      const size_t count = out.size() / sizeof(To);
      if constexpr (std::is_same_v<Wide<From>, float> &&
                    std::is_same_v<Wide<To>, float> &&
                    HWY_TARGET != HWY_SCALAR) {
        const std::byte* const input = in.data();
        std::byte* const output = out.data();
        RunFloatLoop<ReduceOp::kSum, From, To>(
            factor, absl::MakeConstSpan(&input, 1),
            absl::MakeConstSpan(&output, 1), count, hint);
      } else {
        ConvertPlainly(factor, reinterpret_cast<const From*>(in.data()),
                       reinterpret_cast<To*>(out.data()), count);
      }
    });
  });
}

bool AllFiniteOnTarget(DataType dtype, absl::Span<const std::byte> in) {
  bool finite = true;
  VisitFloatType(dtype, [&](auto element) {
    using T = decltype(element);
    const size_t count = in.size() / sizeof(T);
    const auto all_finite = [&]<typename Bits, Bits exponent>() {
      finite = AllFiniteBits<Bits, exponent>(
          reinterpret_cast<const Bits*>(in.data()), count);
    };
    if constexpr (std::is_same_v<T, double>) {
      all_finite.template operator()<uint64_t, 0x7ff0000000000000>();
    } else if constexpr (std::is_same_v<T, float>) {
      all_finite.template operator()<uint32_t, 0x7f800000>();
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      all_finite.template operator()<uint16_t, 0x7f80>();
    } else {
      static_assert(std::is_same_v<T, Float16>);
      all_finite.template operator()<uint16_t, 0x7c00>();
    }
  });
  return finite;
}

void CopyOnTarget(absl::Span<const std::byte> in, absl::Span<std::byte> out) {
  StreamBytes(in.data(), out.data(), out.size());
}

}  // namespace hvdlite::collective::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hvdlite::collective {

HWY_EXPORT(Describe);
HWY_EXPORT(ReduceOnTarget);
HWY_EXPORT(ConvertOnTarget);
HWY_EXPORT(CopyOnTarget);
HWY_EXPORT(AllFiniteOnTarget);

namespace {

// Like ReduceAll(), but scales and rounds a single input even if `factor` is 1.
void ReduceLoops(ReduceOp op, DataType dtype, Factor factor,
                 absl::Span<const std::byte* const> inputs,
                 absl::Span<std::byte* const> outputs, size_t bytes,
                 StoreHint hint) {
  HWY_DYNAMIC_DISPATCH(ReduceOnTarget)
  (op, dtype, factor, inputs, outputs, bytes, hint);
  if (hint == StoreHint::kStreaming) hwy::FlushStream();
}

// out[i] = factor * in[i], between different float types.
void ConvertLoops(DataType from, DataType to, double factor,
                  absl::Span<const std::byte> in, absl::Span<std::byte> out,
                  StoreHint hint) {
  HWY_DYNAMIC_DISPATCH(ConvertOnTarget)(from, to, factor, in, out, hint);
  if (hint == StoreHint::kStreaming) hwy::FlushStream();
}

// Copies past the cache. The arrays do not overlap.
void CopyLoops(absl::Span<const std::byte> in, absl::Span<std::byte> out) {
  HWY_DYNAMIC_DISPATCH(CopyOnTarget)(in, out);
  hwy::FlushStream();
}

}  // namespace

VectorUnit ChosenVectorUnit() { return HWY_DYNAMIC_DISPATCH(Describe)(); }

double ScaleOfInputs(double factor, double num_inputs) {
  double power = 1;
  while (power < num_inputs && std::abs(factor) * power < 1) power *= 2;
  return 1 / power;
}

void ReduceAll(ReduceOp op, DataType dtype, Factor factor,
               absl::Span<const std::byte* const> inputs,
               absl::Span<std::byte* const> outputs, size_t bytes,
               StoreHint hint) {
  if (bytes == 0 || outputs.empty()) return;
  if (inputs.size() == 1 && factor.is_one()) {
    for (std::byte* const output : outputs) {
      CopyScaled(dtype, 1, absl::MakeConstSpan(inputs[0], bytes),
                 absl::MakeSpan(output, bytes), hint);
    }
    return;
  }
  ReduceLoops(op, dtype, factor, inputs, outputs, bytes, hint);
}

void Reduce(ReduceOp op, DataType dtype, absl::Span<const std::byte> in,
            absl::Span<std::byte> inout) {
  const std::byte* const inputs[] = {inout.data(), in.data()};
  std::byte* const outputs[] = {inout.data()};
  ReduceAll(op, dtype, 1, inputs, outputs, inout.size());
}

void CopyScaled(DataType dtype, Factor factor, absl::Span<const std::byte> in,
                absl::Span<std::byte> out, StoreHint hint) {
  if (out.empty()) return;
  if (!factor.is_one()) {
    const std::byte* const inputs[] = {in.data()};
    std::byte* const outputs[] = {out.data()};
    ReduceLoops(ReduceOp::kSum, dtype, factor, inputs, outputs, out.size(),
                hint);
  } else if (in.data() == out.data()) {
    return;
  } else if (hint == StoreHint::kStreaming) {
    CopyLoops(in, out);
  } else {
    std::memcpy(out.data(), in.data(), out.size());
  }
}

void ConvertScaled(DataType from, DataType to, Factor factor,
                   absl::Span<const std::byte> in, absl::Span<std::byte> out,
                   StoreHint hint) {
  if (from == to) return CopyScaled(from, factor, in, out, hint);
  ConvertLoops(from, to, factor.value(), in, out, hint);
}

bool AllFinite(DataType dtype, absl::Span<const std::byte> in) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteOnTarget)(dtype, in);
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
#endif  // HWY_ONCE
