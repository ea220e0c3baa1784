// Judges whether more threads compute than there are CPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/system_files.h"

namespace hvdlite::doctor {

// Of one rank.
struct ThreadFacts {
  std::string host;
  std::vector<int> cpus;  // that it may use
  int threads = 1;        // of OpenMP
  // CPUs' worth of time that a container grants (cgroup); 0: no limit.
  double quota = 0;
};

// By rank. Ranks of a host whose CPUs overlap share them.
std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks);

// How many threads OpenMP starts: OMP_NUM_THREADS, or one per CPU;
// OMP_THREAD_LIMIT at most.
int OpenMpThreads(const base::Environment& environment, int cpus);

// The smallest quota of the process's cgroup (version 1 or 2) and those above
// it, in CPUs; 0: none.
double CgroupQuota(const SystemFiles& files);

}  // namespace hvdlite::doctor
