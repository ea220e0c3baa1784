// Judges whether malloc gives freed memory back to the system.
#pragma once

#include <cstdint>
#include <string>

#include "tools/doctor/finding.h"

namespace hvdlite::doctor {

struct MemoryReturnFacts {
  std::string allocator;  // AllocatorOf()
  int64_t bytes = 0;      // in some blocks: written, freed, and allocated again
  int64_t first_faults = 0;   // page faults when they were first written
  int64_t second_faults = 0;  // and again
};

// Tensors are allocated and freed at every step: memory that goes back is
// faulted in, and zeroed by the kernel, every time.
Finding JudgeMemoryReturn(const MemoryReturnFacts& facts);

}  // namespace hvdlite::doctor
