#include "tools/doctor/checks/core_peak.h"

#include <algorithm>
#include <cmath>

#include "support/machine.h"

// The same targets as in collective/kernels/reduction_kernels.cc.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/doctor/checks/core_peak.cc"
#include <hwy/foreach_target.h>
// This include must follow foreach_target.h.
#include <hwy/highway.h>

// Macros declare the variables of a loop, because arrays cannot hold vectors of
// unknown size.
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
// Each chain starts with another value, or the compiler would compute only one.
// `result` keeps the loop from being optimized away. Values converge to
// summand / (1 - factor) = 1: no overflow, no denormals.
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

namespace {

constexpr int kTries = 10;

// Runs a chain of steps that depend on each other and take one cycle each. A
// step is an exclusive or of two registers: register renaming does not
// eliminate it, unlike additions of constants on some CPUs. Returns the number
// of steps; 0 on other architectures.
int64_t RunChain(int64_t rounds) {
#if defined(__x86_64__)
#define HVDLITE_DOCTOR_XOR "xorq %1, %0\n\t"
#elif defined(__aarch64__)
#define HVDLITE_DOCTOR_XOR "eor %0, %0, %1\n\t"
#endif
#ifdef HVDLITE_DOCTOR_XOR
#define HVDLITE_DOCTOR_XORS_8                                                 \
  HVDLITE_DOCTOR_XOR HVDLITE_DOCTOR_XOR HVDLITE_DOCTOR_XOR HVDLITE_DOCTOR_XOR \
      HVDLITE_DOCTOR_XOR HVDLITE_DOCTOR_XOR HVDLITE_DOCTOR_XOR                \
          HVDLITE_DOCTOR_XOR
  uint64_t value = 1;
  const uint64_t other = 2;
  for (int64_t i = 0; i < rounds; ++i) {
    asm volatile(HVDLITE_DOCTOR_XORS_8 HVDLITE_DOCTOR_XORS_8
                     HVDLITE_DOCTOR_XORS_8 HVDLITE_DOCTOR_XORS_8
                 : "+r"(value)
                 : "r"(other)
                 : "cc");
  }
  return 32 * rounds;
#else
  (void)rounds;
  return 0;
#endif
}

// The highest rate (work per second of CPU time) of several short tries:
// interrupts and other processes can only lower it.
template <typename Work>
double BestRate(const Work& work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double start = support::ThreadCpuSeconds();
    const double done = work();
    const double seconds = support::ThreadCpuSeconds() - start;
    if (seconds > 0) best = std::max(best, done / seconds);
  }
  return best;
}

// Cycles per second of CPU time, in 10^9; 0 if RunChain() does not know the
// architecture.
double MeasureGhz() {
  return 1e-9 * BestRate([] { return static_cast<double>(RunChain(100'000)); });
}

}  // namespace

int64_t UnitsOf(double per_cycle) {
  return std::max<int64_t>(1, std::llround(per_cycle));
}

CorePeak MeasureCorePeak() {
  const FmaLoopKind loop = ThisCpusFmaLoop();
  CorePeak peak = {
      .ghz = 0, .lanes = loop.lanes, .units = 1, .vectors = loop.vectors};
  RunManyChains(200'000);  // wide vectors may lower the clock
  peak.ghz = MeasureGhz();
  if (peak.ghz <= 0) return peak;
  const double flops =
      std::max(BestRate([] { return RunFewChains(200'000); }),
               BestRate([] { return RunManyChains(100'000); }));
  peak.units =
      UnitsOf(flops / (peak.ghz * 1e9) / (2 * static_cast<double>(loop.lanes)));
  return peak;
}

}  // namespace hvdlite::doctor
#endif
