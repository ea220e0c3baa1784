#include "negotiation/world/coordinator_cpu.h"

#include <cstddef>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "negotiation/world/coordinator_core.h"
#include "negotiation/world/process_cpus.h"

namespace hvdlite::internal {
namespace {

std::vector<int> NumbersOf(const cpu_set_t& cpus) {
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) numbers.push_back(cpu);
  }
  return numbers;
}

// What this rank and those of its host need; none where a rank may use some of
// this one's CPUs but not the same, so that nobody can tell who computes where.
std::optional<CpuDemand> DemandOf(const std::vector<cpu_set_t>& cpus_of_rank,
                                  const collective::Topology& topology) {
  const auto rank = static_cast<size_t>(topology.rank);
  const cpu_set_t& own = cpus_of_rank[rank];
  CpuDemand demand = {.cpus = NumbersOf(own),
                      .compute_threads = OpenMpThreads(),
                      .processes = 0,
                      .index = 0};
  for (size_t other = 0; other < cpus_of_rank.size(); ++other) {
    // By name: virtual nodes share a host.
    if (topology.host_of_rank[other] != topology.host_of_rank[rank]) continue;
    if (CPU_EQUAL(&cpus_of_rank[other], &own)) {
      if (other < rank) ++demand.index;
      ++demand.processes;
      continue;
    }
    cpu_set_t common;
    CPU_AND(&common, &cpus_of_rank[other], &own);
    if (CPU_COUNT(&common) > 0) return std::nullopt;
  }
  return demand;
}

}  // namespace

absl::StatusOr<CoordinatorCpu> ChooseCoordinatorCpu(
    const std::string& choice, collective::Communicator& communicator,
    const collective::Topology& topology, const base::Logger& logger) {
  std::vector<cpu_set_t> cpus_of_rank(static_cast<size_t>(topology.size));
  cpus_of_rank[static_cast<size_t>(topology.rank)] = ProcessCpus();
  const std::vector<size_t> bytes_of_rank(cpus_of_rank.size(),
                                          sizeof(cpu_set_t));
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      absl::MakeSpan(reinterpret_cast<std::byte*>(cpus_of_rank.data()),
                     cpus_of_rank.size() * sizeof(cpu_set_t)),
      bytes_of_rank));

  CoordinatorCpu result = {
      .of_its_own = std::nullopt,
      .oversubscribed = IsOversubscribed(static_cast<size_t>(topology.rank),
                                         cpus_of_rank, topology.host_of_rank)};
  if (choice == "none") return result;
  int number = 0;
  if (absl::SimpleAtoi(choice, &number)) {
    logger.Debug(absl::StrCat("coordinator: CPU ", number, ", as configured"));
    result.of_its_own = number;
    return result;
  }
  const std::optional<CpuDemand> demand = DemandOf(cpus_of_rank, topology);
  if (!demand.has_value()) {
    logger.Debug(
        "coordinator: no CPU of its own: ranks of this host share some CPUs, "
        "but not the same");
    return result;
  }
  const std::optional<int> cpu = SpareCpuHere(*demand);
  result.of_its_own = cpu;
  logger.Debug(absl::StrCat(
      "coordinator: ", cpu.has_value() ? absl::StrCat("CPU ", *cpu) : "no CPU",
      " of its own: ", demand->compute_threads, " compute threads in each of ",
      demand->processes, " processes on ", demand->cpus.size(), " CPUs",
      cpu.has_value() ? "; OMP_PLACES keeps compute threads off it, if set so"
                      : ""));
  return result;
}

}  // namespace hvdlite::internal
