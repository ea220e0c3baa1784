// Judges what the kernel tells about this host: SMT, NUMA, huge pages,
// frequencies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "tools/doctor/checks/rank_threads.h"
#include "tools/doctor/finding.h"
#include "tools/support/libraries.h"
#include "tools/support/system_files.h"

namespace hvdlite::doctor {

// Of ranks that share CPUs; mostly one.
struct SmtFacts {
  int ranks = 1;
  int cpus = 0;     // that they may use
  int cores = 0;    // that these belong to
  int threads = 1;  // of OpenMP
  // OMP_PLACES and OMP_PROC_BIND give each thread a core of its own.
  bool one_per_core = false;
};
SmtFacts GatherSmt(const SystemFiles& files,
                   const std::vector<ThreadFacts>& sharers);
Finding JudgeSmt(const SmtFacts& facts);

struct NumaFacts {
  int nodes = 1;                // with memory
  std::vector<int> used_nodes;  // that the rank's CPUs belong to
  std::string policy;           // base::NumaPolicyName
  bool balancing = false;       // the kernel moves pages between nodes
};
NumaFacts GatherNuma(const SystemFiles& files, const std::vector<int>& cpus);
std::vector<Finding> JudgeNuma(const NumaFacts& facts);

struct HugePageFacts {
  std::string transparent;  // "always", "madvise", "never", or empty: none
  // Whether malloc asks for them (GLIBC_TUNABLES).
  bool malloc_asks = false;
  int64_t reserved = 0;  // explicit huge pages, of any size
  int64_t free = 0;
  int64_t page_kib = 4;  // of ordinary pages
  // Fujitsu's libmpg takes memory from large pages by itself, unless
  // XOS_MMM_L_HPAGE_TYPE (empty: not set) is "none".
  bool large_page_library = false;
  std::string large_page_type = "";
};
HugePageFacts GatherHugePages(const SystemFiles& files,
                              const base::Environment& environment,
                              const std::vector<Library>& libraries);
Finding JudgeHugePages(const HugePageFacts& facts);

struct FrequencyFacts {
  std::string driver;                  // "intel_pstate"; empty: not told
  std::vector<std::string> governors;  // of the rank's CPUs, each once
  // The lowest of the CPUs' limits, and the highest of what they could do.
  double limit_ghz = 0;
  double maximum_ghz = 0;
};
FrequencyFacts GatherFrequency(const SystemFiles& files,
                               const std::vector<int>& cpus);
std::vector<Finding> JudgeFrequency(const FrequencyFacts& facts);

}  // namespace hvdlite::doctor
