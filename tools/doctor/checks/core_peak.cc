#include "tools/doctor/checks/core_peak.h"

#include <algorithm>
#include <cmath>

#include "tools/doctor/checks/cpu_time.h"
#include "tools/doctor/checks/fma_loop.h"

namespace hvdlite::doctor {
namespace {

constexpr int kTries = 10;

// Steps that each need the one before and take one cycle. An exclusive or of
// two registers is not done away with while instructions are renamed, as
// additions of constants are on some CPUs. Returns the steps done, 0 where the
// instruction is not known.
int64_t RunChain(int64_t rounds) {
#if defined(__x86_64__)
#define HVDLITE_DOCTOR_STEP "xorq %1, %0\n\t"
#elif defined(__aarch64__)
#define HVDLITE_DOCTOR_STEP "eor %0, %0, %1\n\t"
#endif
#ifdef HVDLITE_DOCTOR_STEP
#define HVDLITE_DOCTOR_STEPS_8                                    \
  HVDLITE_DOCTOR_STEP HVDLITE_DOCTOR_STEP HVDLITE_DOCTOR_STEP     \
      HVDLITE_DOCTOR_STEP HVDLITE_DOCTOR_STEP HVDLITE_DOCTOR_STEP \
          HVDLITE_DOCTOR_STEP HVDLITE_DOCTOR_STEP
  uint64_t value = 1;
  const uint64_t other = 2;
  for (int64_t i = 0; i < rounds; ++i) {
    asm volatile(HVDLITE_DOCTOR_STEPS_8 HVDLITE_DOCTOR_STEPS_8
                     HVDLITE_DOCTOR_STEPS_8 HVDLITE_DOCTOR_STEPS_8
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

// The most work per second of CPU time of some short tries: interrupts and
// other processes only make it less.
template <typename Work>
double BestRate(const Work& work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double start = ThreadCpuSeconds();
    const double done = work();
    const double seconds = ThreadCpuSeconds() - start;
    if (seconds > 0) best = std::max(best, done / seconds);
  }
  return best;
}

}  // namespace

double MeasureGhz() {
  return 1e-9 * BestRate([] { return static_cast<double>(RunChain(100'000)); });
}

int64_t UnitsOf(double per_cycle) {
  return std::max<int64_t>(1, std::llround(per_cycle));
}

CorePeak MeasureCorePeak() {
  const FmaLoopKind loop = ThisCpusFmaLoop();
  CorePeak peak = {
      .ghz = 0, .lanes = loop.lanes, .units = 1, .vectors = loop.vectors};
  RunManyChains(200'000);  // the clock may sink under wide vectors
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
