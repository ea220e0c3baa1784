// One pass over arrays of floats, for any number of inputs and outputs: no
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
#include "collective/kernels/float_vectors-inl.h"
#include "collective/kernels/reduce_op.h"
#include "collective/kernels/streaming.h"

HWY_BEFORE_NAMESPACE();
namespace hvdlite::collective::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// outputs[j][i] = factor * (inputs[0][i] op inputs[1][i] op ...), computed in
// elements of `D`. An output may be an input. After kStreaming a FlushStream()
// must follow.
template <ReduceOp op, typename From, typename To, class D>
class FloatLoop {
 public:
  FloatLoop(double factor, absl::Span<const std::byte* const> inputs,
            absl::Span<std::byte* const> outputs)
      : inputs_(inputs),
        outputs_(outputs),
        factor_(static_cast<hn::TFromD<D>>(factor)) {}

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
  HWY_INLINE void Single(SomeD d, size_t i) const {
    auto v = LoadWide(d, In(0, i));
    for (size_t k = 1; k < inputs_.size(); ++k) {
      v = CombineVectors<op>(v, LoadWide(d, In(k, i)));
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
    auto v0 = LoadWide(d, in);
    auto v1 = LoadWide(d, in + lanes);
    auto v2 = LoadWide(d, in + 2 * lanes);
    auto v3 = LoadWide(d, in + 3 * lanes);
    for (size_t k = 1; k < inputs_.size(); ++k) {
      in = In(k, i);
      v0 = CombineVectors<op>(v0, LoadWide(d, in));
      v1 = CombineVectors<op>(v1, LoadWide(d, in + lanes));
      v2 = CombineVectors<op>(v2, LoadWide(d, in + 2 * lanes));
      v3 = CombineVectors<op>(v3, LoadWide(d, in + 3 * lanes));
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
  const hn::TFromD<D> factor_;
  uint64_t streamed_ = 0;  // bit j: outputs_[j]
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace hvdlite::collective::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
