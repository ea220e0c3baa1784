#include "tools/doctor/doctor.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/report.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, check, verdict, seen, remedy, ranks)

CheckFunction RunAllocator, RunBlas, RunBlasSpeed, RunClocks, RunFrequency,
    RunHugePages, RunLibTorch, RunLimits, RunLinks, RunMemoryBandwidth,
    RunMemoryReturn, RunMpi, RunNuma, RunOpenMp, RunOversubscription,
    RunSharedMemory, RunSlowCore, RunSmt, RunTransports, RunUcx, RunVariables,
    RunVersions;

const std::vector<Check>& AllChecks() {
  // The checks run and are listed in this order.
  static const auto* const checks = new std::vector<Check>{
      {"blas", "the BLAS library, its kernels and its threads", &RunBlas},
      {"openmp", "loaded or linked OpenMP runtimes; missing libraries",
       &RunOpenMp},
      {"libtorch", "whether the program mixes two LibTorchs", &RunLibTorch},
      {"variables", "environment variables that do nothing", &RunVariables},
      {"oversubscription",
       "more threads than CPUs; ranks bound to the same cores; a container's "
       "share",
       &RunOversubscription},
      {"smt", "two threads on a core", &RunSmt},
      {"numa", "NUMA nodes, memory policy, balancing", &RunNuma},
      {"huge_pages", "transparent and reserved huge pages", &RunHugePages},
      {"frequency", "frequency governor and limits", &RunFrequency},
      {"mpi", "MPI library, thread level, ranks that do not find each other",
       &RunMpi},
      {"shared_memory", "whether ranks of a host can share memory",
       &RunSharedMemory},
      {"transports", "the networks that carry MPI's messages", &RunTransports},
      {"ucx", "network devices that UCX finds", &RunUcx},
      {"limits", "limits on address space, file sizes and open files",
       &RunLimits},
      {"allocator", "the malloc in use; missing libraries of LD_PRELOAD",
       &RunAllocator},
      {"memory_return", "whether reused memory causes page faults again",
       &RunMemoryReturn},
      {"versions", "software that differs between hosts", &RunVersions},
      {"clocks", "whether the hosts' wall clocks agree", &RunClocks},
      {"slow_core", "CPUs that are slow, or shared with other processes",
       &RunSlowCore, /*slow=*/true},
      {"blas_speed", "speed of a matrix product, compared with the core's peak",
       &RunBlasSpeed,
       /*slow=*/true},
      {"memory_bandwidth", "memory bandwidth of every rank, all at once",
       &RunMemoryBandwidth,
       /*slow=*/true},
      {"links", "latency and bandwidth between every two ranks", &RunLinks,
       /*slow=*/true}};
  return *checks;
}

std::vector<Check> ChosenChecks(const std::vector<std::string>& names,
                                bool skip_slow) {
  std::vector<Check> chosen;
  for (const Check& check : AllChecks()) {
    const bool asked =
        names.empty() || absl::c_linear_search(names, check.name);
    if (asked && !(skip_slow && check.slow)) chosen.push_back(check);
  }
  return chosen;
}

absl::StatusOr<std::vector<Finding>> RunChecks(const std::vector<Check>& checks,
                                               Session& session) {
  std::vector<Finding> all;
  for (const Check& check : checks) {
    HVDLITE_ASSIGN_OR_RETURN(Findings mine, check.run(session));
    for (Finding& finding : mine) finding.check = check.name;
    HVDLITE_ASSIGN_OR_RETURN(const std::vector<Findings> of_rank,
                             GatherFacts<Findings>(session, mine));
    absl::c_move(MergeFindings(of_rank), std::back_inserter(all));
  }
  return all;
}

}  // namespace hvdlite::doctor
