// Simulated machines in hwloc's language.
#pragma once

#include <gtest/gtest.h>

#include "tools/hvdliterun/plan/machine.h"

namespace hvdlite::launch {

inline constexpr char kA64fx[] =
    "pack:1 numa:4(memory=8000000000) l2:1(size=8388608) core:12 pu:1";
inline constexpr char kDualXeon6248[] =
    "pack:2 [numa(memory=96000000000)] l3:1(size=28835840) core:20 pu:1";
// The second hardware threads of the cores have numbers from 18 on.
inline constexpr char kC48xlarge[] =
    "pack:2 [numa(memory=32000000000)] l3:1 core:9 pu:2(indexes=2*18:18*1)";

inline Machine MachineFrom(const char* description) {
  absl::StatusOr<Machine> machine = MachineOf(description);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.ok() ? *std::move(machine) : Machine();
}

}  // namespace hvdlite::launch
