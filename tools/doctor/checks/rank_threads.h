// The OpenMP threads of ranks: how many there are, where OpenMP puts them
// (OpenMP 5.2, 21.1.5 OMP_PROC_BIND and 21.1.6 OMP_PLACES), what CPUs, cores
// and share of a container they have, and whether these are enough.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/environment.h"
#include "support/libraries.h"
#include "support/machine.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// Of one rank.
struct ThreadFacts {
  std::string host;
  std::vector<int> cpus;        // that it may use
  std::vector<int> cores = {};  // that these belong to (support::CoreOf)
  int threads = 1;              // of OpenMP
  // CPUs' worth of time that a container grants (cgroup); 0: no limit.
  double quota = 0;
  // What OpenMP binds each thread to (support::CoreOf); empty: it does not, or
  // that is not known.
  std::vector<std::set<int>> cores_of_thread = {};
  std::string spinning = "";        // SpinningBy()
  std::string places_outside = "";  // PlacesOutside()
};

// Collective. By rank.
absl::StatusOr<std::vector<ThreadFacts>> GatherThreads(Session& session);

// How many threads a program of these libraries computes with where nobody
// says. OpenMP's choice is one for each of the rank's `own_cpus`. LibTorch's is
// one for each core of the machine, in 1.13 for each CPU, on x86 for each
// second one, whatever the rank is bound to.
struct MachineSize {
  int cpus = 1;
  int cores = 1;
};
int ThreadsByDefault(absl::Span<const support::Library> libraries, int own_cpus,
                     const MachineSize& machine);

// How many threads OpenMP starts: OMP_NUM_THREADS, or `by_default`;
// OMP_THREAD_LIMIT at most.
int OpenMpThreads(const base::Environment& environment, int by_default);

// "OMP_WAIT_POLICY=active" or "GOMP_SPINCOUNT=1000000": what makes threads that
// wait spin for longer than GNU's runtime lets them by itself (3 ms); empty:
// nothing does.
std::string SpinningBy(const base::Environment& environment);

// Ranks that have some of `numbers` in common, directly or through others.
struct Sharers {
  std::vector<int> ranks;  // ascending
  std::set<int> numbers;   // of all of them
};
std::vector<Sharers> GroupByOverlap(
    const std::map<int, std::set<int>>& numbers_of_rank);

// The ranks of each host, by the CPUs that they may use.
std::map<std::string, std::vector<Sharers>> GroupByCpus(
    const std::vector<ThreadFacts>& facts);

// Of `ranks` together.
int64_t ThreadsOf(const std::vector<ThreadFacts>& facts,
                  const std::vector<int>& ranks);
// Of the first of `ranks` that has some.
std::string SpinningOf(const std::vector<ThreadFacts>& facts,
                       const std::vector<int>& ranks);

// How ranks of so many threads come to cores that no other rank may use.
std::string CoresOfTheirOwn(int64_t threads);

// Two threads on a core, and places that a rank may not use. By rank.
std::vector<Finding> JudgeSmt(const std::vector<ThreadFacts>& ranks);

// Whether more threads compute than there are CPUs, and whether ranks bind
// theirs to the same cores. By rank; ranks of a host whose CPUs overlap share
// them.
std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks);

// The CPUs of each place of an explicit OMP_PLACES: "{0,1},{2,3}" or
// "{0:2}:2:2". nullopt for names ("cores"), for places that are left out
// ("!{3}"), and for what is no list.
std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text);

// The cores that OMP_PLACES and OMP_PROC_BIND bind each of `threads` threads
// to, of a rank that may use `cpus` only: the runtime drops other CPUs, and
// places without any. Empty: threads are not bound, or that is not known
// ("sockets", "!{3}").
std::vector<std::set<int>> CoresOfThreads(
    const base::Environment& environment, int threads,
    const std::vector<int>& cpus,
    const std::function<int(int cpu)>& core_of_cpu);

// The text of OMP_PLACES, if it lists CPUs and none of `cpus`; else empty.
std::string PlacesOutside(const base::Environment& environment,
                          const std::vector<int>& cpus);

// A container's share of the CPUs: the smallest quota of the process's cgroup
// (version 1 or 2) and those above it, in CPUs; 0: none.
double CgroupQuota(const support::SystemFiles& files);

}  // namespace hvdlite::doctor
