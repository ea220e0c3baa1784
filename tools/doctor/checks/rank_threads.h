// The OpenMP threads of ranks, and what CPUs and cores they have.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "tools/doctor/session.h"
#include "tools/support/system_files.h"

namespace hvdlite::doctor {

// Of one rank.
struct ThreadFacts {
  std::string host;
  std::vector<int> cpus;  // that it may use
  int threads = 1;        // of OpenMP
  // CPUs' worth of time that a container grants (cgroup); 0: no limit.
  double quota = 0;
  // What OpenMP binds each thread to (CoreOfCpu); empty: it does not, or that
  // is not known.
  std::vector<std::set<int>> cores_of_thread = {};
};

// Collective. By rank.
absl::StatusOr<std::vector<ThreadFacts>> GatherThreads(Session& session);

// How many threads OpenMP starts: OMP_NUM_THREADS, or one per CPU;
// OMP_THREAD_LIMIT at most.
int OpenMpThreads(const base::Environment& environment, int cpus);

// The lowest CPU of the core that `cpu` is a thread of.
int CoreOfCpu(const SystemFiles& files, int cpu);

// Ranks that have some of `numbers` in common, directly or through others.
struct Sharers {
  std::vector<int> ranks;  // ascending
  std::set<int> numbers;   // of all of them
};
std::vector<Sharers> GroupByOverlap(
    const std::map<int, std::set<int>>& numbers_of_rank);

// The ranks of `host`, by the CPUs that they may use.
std::vector<Sharers> GroupByCpus(const std::vector<ThreadFacts>& facts,
                                 const std::string& host);

// How ranks of so many threads come to cores that no other rank may use.
std::string CoresOfTheirOwn(int threads);

}  // namespace hvdlite::doctor
