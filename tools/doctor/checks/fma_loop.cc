#include "tools/doctor/checks/fma_loop.h"

// As collective/kernels/target_loops.cc.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/doctor/checks/fma_loop.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <hwy/highway.h>

// The variables of a loop: vectors of unknown size cannot be in arrays.
#ifndef HVDLITE_DOCTOR_EACH_4
#define HVDLITE_DOCTOR_EACH_4(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3)
#define HVDLITE_DOCTOR_FEW(DO) \
  HVDLITE_DOCTOR_EACH_4(DO, a) \
  HVDLITE_DOCTOR_EACH_4(DO, b) HVDLITE_DOCTOR_EACH_4(DO, c)
#define HVDLITE_DOCTOR_MANY(DO) \
  HVDLITE_DOCTOR_FEW(DO)        \
  HVDLITE_DOCTOR_EACH_4(DO, d) HVDLITE_DOCTOR_EACH_4(DO, e)
#define HVDLITE_DOCTOR_START(x) auto x = hn::Set(d_, start += 0.01F);
#define HVDLITE_DOCTOR_STEP(x) x = hn::MulAdd(x, factor, summand);
#define HVDLITE_DOCTOR_ADD(x) total = hn::Add(total, x);
// Chains that began alike would be computed once; `result` keeps them from
// being left out. Values tend to summand / (1 - factor) = 1: neither overflow
// nor denormals.
#define HVDLITE_DOCTOR_LOOP(name, EACH, chains)             \
  HWY_NOINLINE double name(int64_t rounds, float& result) { \
    const hn::ScalableTag<float> d_;                        \
    float start = result;                                   \
    const auto factor = hn::Set(d_, 0.75F);                 \
    const auto summand = hn::Set(d_, 0.25F);                \
    EACH(HVDLITE_DOCTOR_START)                              \
    for (int64_t i = 0; i < rounds; ++i) {                  \
      EACH(HVDLITE_DOCTOR_STEP)                             \
    }                                                       \
    auto total = hn::Zero(d_);                              \
    EACH(HVDLITE_DOCTOR_ADD)                                \
    result = hn::GetLane(total);                            \
    return 2.0 * static_cast<double>(rounds * (chains)) *   \
           static_cast<double>(hn::Lanes(d_));              \
  }
#endif

HWY_BEFORE_NAMESPACE();
namespace hvdlite::doctor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kFew = 12;
constexpr int64_t kMany = 20;

FmaLoopKind Describe() {
  const hn::ScalableTag<float> d_;
  return {.vectors = hwy::TargetName(HWY_TARGET),
          .lanes = static_cast<int64_t>(hn::Lanes(d_)),
          .chains_few = kFew,
          .chains_many = kMany};
}

HVDLITE_DOCTOR_LOOP(FewChains, HVDLITE_DOCTOR_FEW, kFew)
HVDLITE_DOCTOR_LOOP(ManyChains, HVDLITE_DOCTOR_MANY, kMany)

}  // namespace hvdlite::doctor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hvdlite::doctor {

HWY_EXPORT(Describe);
HWY_EXPORT(FewChains);
HWY_EXPORT(ManyChains);

FmaLoopKind ThisCpusFmaLoop() { return HWY_DYNAMIC_DISPATCH(Describe)(); }
double RunFewChains(int64_t rounds) {
  float result = 0;
  return HWY_DYNAMIC_DISPATCH(FewChains)(rounds, result);
}
double RunManyChains(int64_t rounds) {
  float result = 0;
  return HWY_DYNAMIC_DISPATCH(ManyChains)(rounds, result);
}

}  // namespace hvdlite::doctor
#endif
