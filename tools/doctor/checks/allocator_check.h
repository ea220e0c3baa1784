// Judges which malloc is in use, and what LD_PRELOAD asked for.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/support/libraries.h"

namespace hvdlite::doctor {

// "jemalloc", "tcmalloc", "mimalloc", "Fujitsu's libmpg", or "glibc".
std::string AllocatorOf(const std::vector<Library>& libraries);

// Whether Fujitsu's libmpg, which puts memory into large pages, is among them.
bool HasLargePageLibrary(const std::vector<Library>& libraries);

// What became of an entry of LD_PRELOAD.
struct Preload {
  std::string entry;  // as written there
  bool loaded = false;
};

std::vector<Finding> JudgeAllocator(const std::vector<Library>& libraries,
                                    const std::vector<Preload>& preloads);

// The entries of `ld_preload`, and whether this process has them.
std::vector<Preload> PreloadsOf(const std::string& ld_preload);

}  // namespace hvdlite::doctor
