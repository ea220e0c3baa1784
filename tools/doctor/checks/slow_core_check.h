// Judges CPUs that compute more slowly than the others, or for others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tools/doctor/finding.h"
#include "tools/support/system_files.h"

namespace hvdlite::doctor {

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

std::vector<Finding> JudgeCpus(const std::vector<CpuFacts>& cpus);

// Which of the CPUs rank `rank` looks at: each CPU of a host is looked at by
// one of the ranks that may use it. By rank: hosts, and CPUs that may be used.
std::vector<int> CpusToProbe(int rank,
                             absl::Span<const std::string> host_of_rank,
                             const std::vector<std::vector<int>>& cpus_of_rank);

// Seconds that the hypervisor took from a CPU since the start, from /proc/stat.
double StealSeconds(const SystemFiles& files, int cpu);

}  // namespace hvdlite::doctor
