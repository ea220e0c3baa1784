// What the checks of hosts see and judge: NUMA, huge pages, frequencies,
// limits, CPUs that are slow or shared, memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/environment.h"
#include "support/core_use.h"
#include "support/libraries.h"
#include "support/machine.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::doctor {

struct NumaFacts {
  int nodes = 1;                // with memory
  std::vector<int> used_nodes;  // that the rank's CPUs belong to
  std::string policy;           // base::NumaPolicyName
  bool balancing = false;       // the kernel moves pages between nodes
};
NumaFacts GatherNuma(const support::SystemFiles& files,
                     const std::vector<int>& cpus);
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
HugePageFacts GatherHugePages(const support::SystemFiles& files,
                              const base::Environment& environment,
                              const std::vector<support::Library>& libraries);
Finding JudgeHugePages(const HugePageFacts& facts);

struct FrequencyFacts {
  std::string driver;                  // "intel_pstate"; empty: not told
  std::vector<std::string> governors;  // of the rank's CPUs, each once
  // The lowest of the CPUs' limits, and the highest of what they could do.
  double limit_ghz = 0;
  double maximum_ghz = 0;
};
FrequencyFacts GatherFrequency(const support::SystemFiles& files,
                               const std::vector<int>& cpus);
std::vector<Finding> JudgeFrequency(const FrequencyFacts& facts);

// Limits of the process (ulimit); nullopt: none.
struct LimitFacts {
  std::optional<int64_t> address_space_bytes = std::nullopt;  // -v
  std::optional<int64_t> file_bytes = std::nullopt;           // -f
  int64_t open_files = 1024;                                  // -n
  int64_t ranks_on_host = 1;
};
std::vector<Finding> JudgeLimits(const LimitFacts& facts);

// What a thread that was bound to a CPU, and computed all the time, got there.
struct CpuFacts {
  std::string host;
  int rank = 0;
  int cpu = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;       // that the thread ran
  double steal_seconds = 0;     // that the hypervisor took
  double gflops = 0;            // per second of cpu_seconds
  std::string competitor = "";  // CompetitorOn()
};

// CPUs that compute more slowly than the others, or for others.
std::vector<Finding> JudgeCpus(const std::vector<CpuFacts>& cpus);

// Ranks with more OpenMP threads than CPUs that nobody else computes on.
std::vector<Finding> JudgeFreeCpus(const std::vector<ThreadFacts>& ranks,
                                   const std::vector<CpuFacts>& cpus);

// Which of the CPUs rank `rank` looks at: each CPU of a host is looked at by
// one of the ranks that may use it. By rank: hosts, and CPUs that may be used.
std::vector<int> CpusToProbe(int rank,
                             absl::Span<const std::string> host_of_rank,
                             const std::vector<std::vector<int>>& cpus_of_rank);

// "python3 (pid 123)": who, but for `own`, ran most on `cpu` between the two;
// empty if nobody did. A process of several threads counts where it ran last
// only if no other did run there, and never if it is called like `own`: the
// other ranks compute on CPUs of their own meanwhile.
std::string CompetitorOn(int cpu, const support::ProcessTimes& before,
                         const support::ProcessTimes& after, int own);

// The memory bandwidth that ranks have while all use theirs.
// `gb_per_second[r]`: bytes that rank r read and wrote, copying.
std::vector<Finding> JudgeMemoryBandwidth(
    absl::Span<const double> gb_per_second,
    absl::Span<const std::string> host_of_rank);

// Whether malloc gives freed memory back to the system.
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
