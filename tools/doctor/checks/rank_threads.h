// The OpenMP threads of ranks: their number, where OpenMP binds them (OpenMP
// 5.2, 21.1.5 OMP_PROC_BIND and 21.1.6 OMP_PLACES), and whether they have
// enough CPUs, cores and share of a container.
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

// The threads of one rank.
struct ThreadFacts {
  std::string host;
  std::vector<int> cpus;        // CPUs that the rank may use
  std::vector<int> cores = {};  // of `cpus` (support::CoreOf)
  int threads = 1;              // number of OpenMP threads
  // CPU limit of the container (cgroup), in CPUs; 0: no limit.
  double quota = 0;
  // The cores to which OpenMP binds each thread (support::CoreOf). Empty:
  // threads are not bound, or the binding is not known.
  std::vector<std::set<int>> cores_of_thread = {};
  std::string spinning = "";        // SpinningBy()
  std::string places_outside = "";  // PlacesOutside()
};

// Collective. Returns the facts by rank.
absl::StatusOr<std::vector<ThreadFacts>> GatherThreads(Session& session);

// The number of threads that a program with these libraries uses if it is not
// set. OpenMP chooses one per CPU in `own_cpus`, the CPUs of the rank. LibTorch
// chooses one per core of the machine (1.13: one per CPU, on x86 one per two
// CPUs), independent of the rank's binding.
struct MachineSize {
  int cpus = 1;
  int cores = 1;
};
int ThreadsByDefault(absl::Span<const support::Library> libraries, int own_cpus,
                     const MachineSize& machine);

// The number of OpenMP threads: OMP_NUM_THREADS if set, else `by_default`, and
// at most OMP_THREAD_LIMIT.
int OpenMpThreads(const base::Environment& environment, int by_default);

// "OMP_WAIT_POLICY=active" or "GOMP_SPINCOUNT=1000000": the setting that makes
// waiting threads spin for longer than the default of GNU's runtime (3 ms).
// Empty: there is none.
std::string SpinningBy(const base::Environment& environment);

// Ranks that share some of `numbers`, directly or through other ranks.
struct Sharers {
  std::vector<int> ranks;  // ascending
  std::set<int> numbers;   // of all these ranks
};
std::vector<Sharers> GroupByOverlap(
    const std::map<int, std::set<int>>& numbers_of_rank);

// The ranks of each host, grouped by the CPUs that they may use.
std::map<std::string, std::vector<Sharers>> GroupByCpus(
    const std::vector<ThreadFacts>& facts);

// The number of threads of all `ranks`.
int64_t ThreadsOf(const std::vector<ThreadFacts>& facts,
                  const std::vector<int>& ranks);
// The first non-empty `spinning` among `ranks`.
std::string SpinningOf(const std::vector<ThreadFacts>& facts,
                       const std::vector<int>& ranks);

// The remedy that gives each rank `threads` cores that no other rank uses.
std::string CoresOfTheirOwn(int64_t threads);

// Finds cores with two threads, and OMP_PLACES that a rank may not use.
// `ranks` is by rank.
std::vector<Finding> JudgeSmt(const std::vector<ThreadFacts>& ranks);

// Finds ranks with more threads than CPUs, and ranks that bind threads to the
// same cores. Ranks of a host share their CPUs if these overlap. `ranks` is by
// rank.
std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks);

// The CPUs of each place of an explicit OMP_PLACES: "{0,1},{2,3}" or
// "{0:2}:2:2". nullopt for names ("cores"), excluded places ("!{3}") and
// invalid lists.
std::optional<std::vector<std::vector<int>>> ParsePlaces(
    absl::string_view text);

// The cores to which OMP_PLACES and OMP_PROC_BIND bind each of `threads`
// threads. The rank may use only `cpus`: the runtime drops other CPUs, and
// places that become empty. Empty: threads are not bound, or the binding is
// not known ("sockets", "!{3}").
std::vector<std::set<int>> CoresOfThreads(
    const base::Environment& environment, int threads,
    const std::vector<int>& cpus,
    const std::function<int(int cpu)>& core_of_cpu);

// The text of OMP_PLACES if it lists CPUs but none of `cpus`; else empty.
std::string PlacesOutside(const base::Environment& environment,
                          const std::vector<int>& cpus);

// The CPU limit of a container, in CPUs: the smallest quota of the process's
// cgroup (version 1 or 2) and its parents; 0: no limit.
double CgroupQuota(const support::SystemFiles& files);

}  // namespace hvdlite::doctor
