#include "tools/doctor/check.h"

namespace hvdlite::doctor {

const std::vector<Check>& AllChecks() {
  static const auto* const checks = new std::vector<Check>{
      {"blas", "which BLAS runs, with which kernels and threads", false,
       &CheckBlas},
      {"openmp", "OpenMP runtimes that are loaded or linked; missing libraries",
       false, &CheckOpenMp},
      {"variables", "environment variables that do nothing", false,
       &CheckVariables},
      {"oversubscription",
       "more threads than CPUs; ranks bound to the same cores; a container's "
       "share",
       false, &CheckOversubscription},
      {"smt", "two threads on a core", false, &CheckSmt},
      {"numa", "NUMA nodes, memory policy, balancing", false, &CheckNuma},
      {"huge_pages", "transparent and reserved huge pages", false,
       &CheckHugePages},
      {"frequency", "frequency governor and limits", false, &CheckFrequency},
      {"mpi", "MPI library, thread level, ranks that do not find each other",
       false, &CheckMpi},
      {"transports", "what MPI's messages travel over", false,
       &CheckTransports},
      {"ucx", "devices that UCX finds", false, &CheckUcx},
      {"allocator", "malloc in use; preloaded libraries that are missing",
       false, &CheckAllocator},
      {"memory_return", "whether freed memory is faulted in again", false,
       &CheckMemoryReturn},
      {"versions", "software that differs between hosts", false,
       &CheckVersions},
      {"clocks", "wall clocks of the hosts", false, &CheckClocks},
      {"slow_core", "CPUs that are slow, or shared with other processes", true,
       &CheckSlowCore},
      {"blas_speed", "a matrix product against the core's peak", true,
       &CheckBlasSpeed},
      {"memory_bandwidth", "of every rank, all at once", true,
       &CheckMemoryBandwidth},
      {"links", "latency and bandwidth between every two ranks", true,
       &CheckLinks},
  };
  return *checks;
}

}  // namespace hvdlite::doctor
