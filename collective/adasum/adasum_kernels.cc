#include "collective/adasum/adasum_kernels.h"

#include "collective/kernels/elements.h"

namespace hvdlite::collective {
namespace {

// Independent sums, so that an addition need not wait for the one before.
constexpr size_t kLanes = 8;

struct LaneSums {
  double aa[kLanes] = {};
  double bb[kLanes] = {};
  double ab[kLanes] = {};
};

template <typename T>
void Accumulate(const T* a, const T* b, size_t lanes, LaneSums& sums) {
  for (size_t lane = 0; lane < lanes; ++lane) {
    const double x = Widen(a[lane]);
    const double y = Widen(b[lane]);
    sums.aa[lane] += x * x;
    sums.bb[lane] += y * y;
    sums.ab[lane] += x * y;
  }
}

template <typename T>
ScalarProducts MultiplyElements(const T* __restrict a, const T* __restrict b,
                                size_t count) {
  LaneSums sums;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Accumulate(a + i, b + i, kLanes, sums);
  }
  Accumulate(a + i, b + i, count - i, sums);
  ScalarProducts products;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    products =
        products + ScalarProducts{sums.aa[lane], sums.bb[lane], sums.ab[lane]};
  }
  return products;
}

template <typename T>
void CombineElements(const AdasumFactors& factors, const T* __restrict a,
                     T* __restrict b, size_t count) {
  const Wide<T> a_factor = static_cast<Wide<T>>(factors.a);
  const Wide<T> b_factor = static_cast<Wide<T>>(factors.b);
  for (size_t i = 0; i < count; ++i) {
    b[i] = Narrow<T>(a_factor * Widen(a[i]) + b_factor * Widen(b[i]));
  }
}

}  // namespace

ScalarProducts MultiplyVectors(DataType dtype, absl::Span<const std::byte> a,
                               absl::Span<const std::byte> b) {
  ScalarProducts products;
  VisitFloatType(dtype, [&](auto element) {
    using T = decltype(element);
    products = MultiplyElements(reinterpret_cast<const T*>(a.data()),
                                reinterpret_cast<const T*>(b.data()),
                                a.size() / sizeof(T));
  });
  return products;
}

AdasumFactors FactorsFor(const ScalarProducts& products) {
  return {products.aa == 0 ? 1 : 1 - products.ab / (2 * products.aa),
          products.bb == 0 ? 1 : 1 - products.ab / (2 * products.bb)};
}

void CombineVectors(DataType dtype, const AdasumFactors& factors,
                    absl::Span<const std::byte> a, absl::Span<std::byte> b) {
  VisitFloatType(dtype, [&](auto element) {
    using T = decltype(element);
    CombineElements<T>(factors, reinterpret_cast<const T*>(a.data()),
                       reinterpret_cast<T*>(b.data()), b.size() / sizeof(T));
  });
}

}  // namespace hvdlite::collective
