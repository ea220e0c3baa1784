// The checks of hosts, with the facts that they judge: NUMA, huge pages,
// frequencies, limits, slow or shared CPUs, memory.
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
  int nodes = 1;                // NUMA nodes with memory
  std::vector<int> used_nodes;  // nodes of the rank's CPUs
  std::string policy;           // support::NumaPolicyName
  bool balancing = false;       // the kernel moves pages between nodes
};
NumaFacts GatherNuma(const support::SystemFiles& files,
                     const std::vector<int>& cpus);
std::vector<Finding> JudgeNuma(const NumaFacts& facts);

struct HugePageFacts {
  std::string transparent;  // "always", "madvise", "never"; empty: none
  // Whether malloc requests huge pages (GLIBC_TUNABLES).
  bool malloc_asks = false;
  int64_t reserved = 0;  // explicit huge pages of all sizes
  int64_t free = 0;
  int64_t page_kib = 4;  // of ordinary pages
  // Fujitsu's libmpg always uses large pages, unless XOS_MMM_L_HPAGE_TYPE
  // (empty: not set) is "none".
  bool large_page_library = false;
  std::string large_page_type = "";
};
HugePageFacts GatherHugePages(const support::SystemFiles& files,
                              const base::Environment& environment,
                              const std::vector<support::Library>& libraries);
Finding JudgeHugePages(const HugePageFacts& facts);

struct FrequencyFacts {
  std::string driver;                  // "intel_pstate"; empty: unknown
  std::vector<std::string> governors;  // of the rank's CPUs, without repeats
  // The lowest limit and the highest possible clock of these CPUs.
  double limit_ghz = 0;
  double maximum_ghz = 0;
};
FrequencyFacts GatherFrequency(const support::SystemFiles& files,
                               const std::vector<int>& cpus);
std::vector<Finding> JudgeFrequency(const FrequencyFacts& facts);

// Limits of the process (ulimit); nullopt: unlimited.
struct LimitFacts {
  std::optional<int64_t> address_space_bytes = std::nullopt;  // -v
  std::optional<int64_t> file_bytes = std::nullopt;           // -f
  int64_t open_files = 1024;                                  // -n
  int64_t ranks_on_host = 1;
};
std::vector<Finding> JudgeLimits(const LimitFacts& facts);

// Result of a test thread that was bound to one CPU and computed all the time.
struct CpuFacts {
  std::string host;
  int rank = 0;
  int cpu = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;       // CPU time of the thread
  double steal_seconds = 0;     // taken by the hypervisor
  double gflops = 0;            // per second of cpu_seconds
  std::string competitor = "";  // CompetitorOn()
};

// Finds CPUs that are slower than the others or that other processes use.
std::vector<Finding> JudgeCpus(const std::vector<CpuFacts>& cpus);

// Finds ranks with more OpenMP threads than CPUs that are free of other load.
std::vector<Finding> JudgeFreeCpus(const std::vector<ThreadFacts>& ranks,
                                   const std::vector<CpuFacts>& cpus);

// The CPUs that rank `rank` measures. Each CPU of a host is measured by one of
// the ranks that may use it. Both lists are by rank: the hosts, and the CPUs
// that the ranks may use.
std::vector<int> CpusToProbe(int rank,
                             absl::Span<const std::string> host_of_rank,
                             const std::vector<std::vector<int>>& cpus_of_rank);

// "python3 (pid 123)": the process, except `own`, that used `cpu` most between
// `before` and `after`; empty if there is none. A process counts for the CPU
// where it ran last. If no process ran last on `cpu`, one with several threads
// may be named, but not one with the name of `own`: it is another rank, which
// computes on its own CPUs.
std::string CompetitorOn(int cpu, const support::ProcessTimes& before,
                         const support::ProcessTimes& after, int own);

// The memory bandwidth of the ranks while all of them copy memory.
// `gb_per_second[r]`: bytes that rank r read and wrote.
std::vector<Finding> JudgeMemoryBandwidth(
    absl::Span<const double> gb_per_second,
    absl::Span<const std::string> host_of_rank);

// Shows whether malloc returns freed memory to the system.
struct MemoryReturnFacts {
  std::string allocator;  // AllocatorOf()
  int64_t bytes = 0;      // of all blocks: written, freed, and allocated again
  int64_t first_faults = 0;   // page faults of the first use
  int64_t second_faults = 0;  // page faults of the second use
};

// Every step allocates and frees tensors. Memory that malloc returned to the
// system causes page faults each time, and the kernel zeroes it.
Finding JudgeMemoryReturn(const MemoryReturnFacts& facts);

}  // namespace hvdlite::doctor
