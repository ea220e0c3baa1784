// Tests that run once for each compiled kind of vector unit (target) that this
// CPU has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::testing {

// Restricts the loops to `targets` (bits of HWY_...; 0: all that the CPU has).
// Returns the name of the target that they use from now on.
inline std::string UseTargets(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  return std::string(collective::ChosenVectorUnit().name);
}

struct Target {
  int64_t bit = 0;
  std::string name;
};

// The targets, the best one first.
inline std::vector<Target> CompiledTargets() {
  std::vector<Target> targets;
  const uint64_t supported = static_cast<uint64_t>(hwy::SupportedTargets());
  for (int shift = 0; shift < 63; ++shift) {
    const uint64_t bit = uint64_t{1} << shift;
    if ((supported & bit) == 0) continue;
    const int64_t target = static_cast<int64_t>(bit);
    const std::string name = UseTargets(target);
    // Otherwise the loops use the baseline instead.
    if (name == hwy::TargetName(target)) targets.push_back({target, name});
  }
  if (targets.empty()) targets.push_back({0, UseTargets(0)});
  UseTargets(0);
  return targets;
}

class EachTargetTest : public ::testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    ASSERT_EQ(UseTargets(GetParam().bit), GetParam().name);
  }
  void TearDown() override { UseTargets(0); }
};

#define HVDLITE_INSTANTIATE_FOR_EACH_TARGET(suite)                            \
  INSTANTIATE_TEST_SUITE_P(Targets, suite,                                    \
                           ::testing::ValuesIn(CompiledTargets()),            \
                           [](const ::testing::TestParamInfo<Target>& info) { \
                             return info.param.name;                          \
                           })

}  // namespace hvdlite::testing
