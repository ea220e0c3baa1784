// Vectors of floats in memory, and widened to what is computed with. Included
// once for each target.

// clang-format off
#if defined(HVDLITE_COLLECTIVE_KERNELS_FLOAT_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
// clang-format on
#ifdef HVDLITE_COLLECTIVE_KERNELS_FLOAT_VECTORS_INL_H_
#undef HVDLITE_COLLECTIVE_KERNELS_FLOAT_VECTORS_INL_H_
#else
#define HVDLITE_COLLECTIVE_KERNELS_FLOAT_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "collective/kernels/float16.h"
#include "collective/kernels/reduce_op.h"

HWY_BEFORE_NAMESPACE();
namespace hvdlite::collective::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Elements at `in` (of any alignment that is theirs), exactly.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadWide(D d, const T* in) {
  return hn::LoadU(d, in);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const Float16* in) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> d_half;
  return hn::PromoteTo(
      d, hn::BitCast(d_half,
                     hn::LoadU(d16, reinterpret_cast<const uint16_t*>(in))));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const BFloat16* in) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits =
      hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(in)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// Rounds float32 as ToFloat16 and ToBFloat16 do; bits of the result.
template <class D>
HWY_INLINE auto RoundToFloat16(D d, hn::Vec<D> value) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> d_half;
  (void)d;
  return hn::BitCast(d16, hn::DemoteTo(d_half, value));
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

// Stores, past the cache if kStreamed: then `out` must be aligned to what is
// stored.
template <bool kStreamed, class D>
HWY_INLINE void StoreVector(D d, hn::Vec<D> value, hn::TFromD<D>* out) {
  if constexpr (kStreamed) {
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

// As Combine() of elements.
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

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace hvdlite::collective::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
