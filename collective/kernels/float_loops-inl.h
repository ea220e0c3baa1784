// One pass over arrays of floats with any number of inputs and outputs; no
// element is stored in between. Included once for each target.

// clang-format off
#if defined(HVDLITE_COLLECTIVE_KERNELS_FLOAT_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
// clang-format on
#ifdef HVDLITE_COLLECTIVE_KERNELS_FLOAT_LOOPS_INL_H_
#undef HVDLITE_COLLECTIVE_KERNELS_FLOAT_LOOPS_INL_H_
#else
#define HVDLITE_COLLECTIVE_KERNELS_FLOAT_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/elements.h"
#include "collective/kernels/reduction_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace hvdlite::collective::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Loads elements at `in`, aligned to their type, exactly.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadWide(D d, const T* in) {
  return hn::LoadU(d, in);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const Float16* in) {
  const hn::Rebind<uint16_t, D> d16;
  const auto half = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(in));
#if HWY_TARGET == HWY_SSE2
  // Like ToFloat(): Highway 1.2 does not convert infinities without a CPU
  // instruction.
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::PromoteTo(d32, half);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(d32, 0x7fff)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000)));
  const auto exponent = hn::Set(d32, 0x1fu << 23);
  const auto rebias = hn::Set(d32, 112u << 23);
  const auto normal = hn::Add(magnitude, rebias);
  const auto subnormal = hn::BitCast(
      d32, hn::Sub(hn::BitCast(d, hn::Add(normal, hn::Set(d32, 1u << 23))),
                   hn::Set(d, 0x1p-14f)));
  const auto of = hn::And(magnitude, exponent);
  const auto finite =
      hn::IfThenElse(hn::Eq(of, hn::Zero(d32)), subnormal, normal);
  return hn::BitCast(
      d, hn::Or(sign, hn::IfThenElse(hn::Eq(of, exponent),
                                     hn::Add(normal, rebias), finite)));
#else
  const hn::Rebind<hwy::float16_t, D> d_half;
  return hn::PromoteTo(d, hn::BitCast(d_half, half));
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const BFloat16* in) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits =
      hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(in)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// Rounds float32 as ToFloat16() and ToBFloat16() do; returns the bits.
template <class D>
HWY_INLINE auto RoundToFloat16(D d, hn::Vec<D> value) {
  const hn::Rebind<uint16_t, D> d16;
#if HWY_TARGET == HWY_SSE2
  const hn::Rebind<uint32_t, D> d32;
  const hn::Rebind<int32_t, D> d_signed;
  const auto bits = hn::BitCast(d32, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffff));
  const auto upper = hn::ShiftRight<13>(magnitude);
  const auto last_place = hn::And(upper, hn::Set(d32, 1));
  const auto normal = hn::ShiftRight<13>(hn::Add(
      hn::Sub(magnitude, hn::Set(d32, (112u << 23) - 0xfff)), last_place));
  const auto half = hn::Set(d, 0.5f);
  const auto subnormal =
      hn::Sub(hn::BitCast(d32, hn::Add(hn::BitCast(d, magnitude), half)),
              hn::BitCast(d32, half));
  const auto nan =
      hn::Or(hn::Set(d32, 0x7e00), hn::And(upper, hn::Set(d32, 0x3ff)));
  // Compares as signed numbers: the sign bit is 0, so the order is the same.
  const auto less = [&](auto a, uint32_t b) {
    return hn::RebindMask(d32,
                          hn::Lt(hn::BitCast(d_signed, a),
                                 hn::Set(d_signed, static_cast<int32_t>(b))));
  };
  const auto finite =
      hn::IfThenElse(less(magnitude, 113u << 23), subnormal, normal);
  const auto large = hn::IfThenElse(less(magnitude, (0xffu << 23) + 1),
                                    hn::Set(d32, 0x7c00), nan);
  const auto result =
      hn::Or(sign, hn::IfThenElse(less(magnitude, 143u << 23), finite, large));
  return hn::DemoteTo(d16, hn::BitCast(d_signed, result));
#else
  const hn::Rebind<hwy::float16_t, D> d_half;
  (void)d;
  return hn::BitCast(d16, hn::DemoteTo(d_half, value));
#endif
}
template <class D>
HWY_INLINE auto RoundToBFloat16(D d, hn::Vec<D> value) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const hn::Rebind<int32_t, D> d_signed;
  (void)d;
  const auto bits = hn::BitCast(d32, value);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto last_place = hn::And(upper, hn::Set(d32, 1));
  const auto rounded = hn::ShiftRight<16>(
      hn::Add(bits, hn::Add(last_place, hn::Set(d32, 0x7fff))));
  const auto nan = hn::Or(upper, hn::Set(d32, 0x40));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(value));
  return hn::DemoteTo(
      d16, hn::BitCast(d_signed, hn::IfThenElse(is_nan, nan, rounded)));
}

// Stores a vector, past the cache if kStreamed. Then `out` must be aligned to
// the stored size.
template <bool kStreamed, class D>
HWY_INLINE void StoreVector(D d, hn::Vec<D> value, hn::TFromD<D>* out) {
  // Stream() may write 16 bytes for smaller vectors.
  if constexpr (kStreamed && hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    hn::Stream(value, d, out);
  } else {
    hn::StoreU(value, d, out);
  }
}
template <bool kStreamed, class D, typename T = hn::TFromD<D>>
HWY_INLINE void StoreNarrow(D d, hn::Vec<D> value, T* out) {
  StoreVector<kStreamed>(d, value, out);
}
template <bool kStreamed, class D>
HWY_INLINE void StoreNarrow(D d, hn::Vec<D> value, Float16* out) {
  StoreVector<kStreamed>(hn::Rebind<uint16_t, D>(), RoundToFloat16(d, value),
                         reinterpret_cast<uint16_t*>(out));
}
template <bool kStreamed, class D>
HWY_INLINE void StoreNarrow(D d, hn::Vec<D> value, BFloat16* out) {
  StoreVector<kStreamed>(hn::Rebind<uint16_t, D>(), RoundToBFloat16(d, value),
                         reinterpret_cast<uint16_t*>(out));
}

// Like Combine() for elements.
template <ReduceOp op, class V>
HWY_INLINE V CombineVectors(V a, V b) {
  if constexpr (op == ReduceOp::kSum) {
    return hn::Add(a, b);
  } else if constexpr (op == ReduceOp::kProduct) {
    return hn::Mul(a, b);
  } else if constexpr (op == ReduceOp::kMin) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  } else {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
}

// outputs[j][i] = factor * (inputs[0][i] op inputs[1][i] op ...), computed in
// elements of `D`. An output may be an input. Call FlushStream() after
// kStreaming.
template <ReduceOp op, typename From, typename To, class D>
class FloatLoop {
 public:
  FloatLoop(double factor, absl::Span<const std::byte* const> inputs,
            absl::Span<std::byte* const> outputs)
      : inputs_(inputs),
        outputs_(outputs),
        input_scale_(static_cast<hn::TFromD<D>>(
            kScalesInputs<op, From>
                ? ScaleOfInputs(factor, static_cast<double>(inputs.size()))
                : 1)),
        factor_(static_cast<hn::TFromD<D>>(factor / input_scale_)) {}

  void Run(size_t count, StoreHint hint) {
    const D d;
    const hn::CappedTag<hn::TFromD<D>, 1> one;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    if (hint == StoreHint::kStreaming) {
      const StreamedOutputs streamed(inputs_, outputs_, count * sizeof(To),
                                     lanes * sizeof(To));
      streamed_ = streamed.mask;
      const size_t peeled = streamed.peeled_bytes / sizeof(To);
      for (; i < peeled; ++i) Single(one, i);
    }
    for (; i + 4 * lanes <= count; i += 4 * lanes) FourVectors(i);
    for (; i + lanes <= count; i += lanes) Single(d, i);
    for (; i < count; ++i) Single(one, i);
  }

 private:
  const From* In(size_t k, size_t i) const {
    return reinterpret_cast<const From*>(inputs_[k]) + i;
  }

  template <class SomeD>
  HWY_INLINE hn::Vec<SomeD> Load(SomeD d, const From* in) const {
    const auto v = LoadWide(d, in);
    if constexpr (kScalesInputs<op, From>) {
      return hn::Mul(v, hn::Set(d, input_scale_));
    } else {
      return v;
    }
  }

  template <class SomeD>
  HWY_INLINE void Single(SomeD d, size_t i) const {
    auto v = Load(d, In(0, i));
    for (size_t k = 1; k < inputs_.size(); ++k) {
      v = CombineVectors<op>(v, Load(d, In(k, i)));
    }
    if (factor_ != 1) v = hn::Mul(v, hn::Set(d, factor_));
    for (std::byte* const output : outputs_) {
      StoreNarrow<false>(d, v, reinterpret_cast<To*>(output) + i);
    }
  }

  template <bool kStreamed>
  HWY_INLINE void StoreFour(hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2,
                            hn::Vec<D> v3, To* out) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    StoreNarrow<kStreamed>(d, v0, out);
    StoreNarrow<kStreamed>(d, v1, out + lanes);
    StoreNarrow<kStreamed>(d, v2, out + 2 * lanes);
    StoreNarrow<kStreamed>(d, v3, out + 3 * lanes);
  }

  HWY_INLINE void FourVectors(size_t i) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const From* in = In(0, i);
    auto v0 = Load(d, in);
    auto v1 = Load(d, in + lanes);
    auto v2 = Load(d, in + 2 * lanes);
    auto v3 = Load(d, in + 3 * lanes);
    for (size_t k = 1; k < inputs_.size(); ++k) {
      in = In(k, i);
      v0 = CombineVectors<op>(v0, Load(d, in));
      v1 = CombineVectors<op>(v1, Load(d, in + lanes));
      v2 = CombineVectors<op>(v2, Load(d, in + 2 * lanes));
      v3 = CombineVectors<op>(v3, Load(d, in + 3 * lanes));
    }
    if (factor_ != 1) {
      const auto factor = hn::Set(d, factor_);
      v0 = hn::Mul(v0, factor);
      v1 = hn::Mul(v1, factor);
      v2 = hn::Mul(v2, factor);
      v3 = hn::Mul(v3, factor);
    }
    uint64_t streamed = streamed_;
    for (std::byte* const output : outputs_) {
      To* const out = reinterpret_cast<To*>(output) + i;
      if ((streamed & 1) != 0) {
        StoreFour<true>(v0, v1, v2, v3, out);
      } else {
        StoreFour<false>(v0, v1, v2, v3, out);
      }
      streamed >>= 1;
    }
  }

  const absl::Span<const std::byte* const> inputs_;
  const absl::Span<std::byte* const> outputs_;
  const hn::TFromD<D> input_scale_;
  const hn::TFromD<D> factor_;  // for results of scaled inputs
  uint64_t streamed_ = 0;  // bit j: outputs_[j]
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace hvdlite::collective::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
