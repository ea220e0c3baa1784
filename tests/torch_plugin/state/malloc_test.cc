// How init() treats freed memory.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/environment.h"
#include "base/malloc_settings.h"

namespace hvdlite {
namespace {

int64_t FaultsSoFar() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Page faults when a tensor of 64 MiB is made, written and freed.
int64_t FaultsOfALargeTensor() {
  const int64_t before = FaultsSoFar();
  torch::ones({16 << 20});
  return FaultsSoFar() - before;
}

TEST(MallocTest, FreedMemoryIsReusedIfMallocIsTuned) {
  const std::string reason = base::WhyMallocIsKept(
      "tune", base::MallocIsGlibc(), base::ProcessEnvironment());
  if (!reason.empty()) GTEST_SKIP() << "malloc is the user's: " << reason;
  // Take the smallest number: at first, freed memory lies in pieces between
  // smaller blocks of other threads, so the heap grows further.
  int64_t faults = FaultsOfALargeTensor();
  for (int i = 0; i < 30 && faults >= 30; ++i) {
    faults = std::min(faults, FaultsOfALargeTensor());
  }
  if (Config::from_env().malloc == "keep") {
    EXPECT_GT(faults, 30);  // huge pages are of 2 MiB each
  } else {
    EXPECT_LT(faults, 30);
  }
}

}  // namespace
}  // namespace hvdlite
