#include "negotiation/world/coordinator_cpu.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace hvdlite::internal {
namespace {

// Returns a function of the OpenMP runtime that LibTorch brought into the
// process, or null. It is looked up, because linking could bring in a second
// runtime.
template <typename Function>
Function* OpenMpFunction(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void AddOpenMpPlaces(cpu_set_t& cpus) {
  auto* num_places = OpenMpFunction<int()>("omp_get_num_places");
  auto* place_num_procs = OpenMpFunction<int(int)>("omp_get_place_num_procs");
  auto* place_proc_ids =
      OpenMpFunction<void(int, int*)>("omp_get_place_proc_ids");
  if (num_places == nullptr || place_num_procs == nullptr ||
      place_proc_ids == nullptr) {
    return;
  }
  for (int place = 0; place < num_places(); ++place) {
    std::vector<int> ids(static_cast<size_t>(place_num_procs(place)));
    if (ids.empty()) continue;
    place_proc_ids(place, ids.data());
    for (const int id : ids) {
      if (id >= 0 && id < CPU_SETSIZE) CPU_SET(id, &cpus);
    }
  }
}

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap BitmapOf(const std::vector<int>& cpus) {
  Bitmap bitmap(hwloc_bitmap_alloc());
  if (bitmap == nullptr) return bitmap;
  for (const int cpu : cpus) {
    if (cpu >= 0) hwloc_bitmap_set(bitmap.get(), static_cast<unsigned>(cpu));
  }
  return bitmap;
}

// The cores with one of `cpus`, in the machine's order. If the system does not
// report cores, its processing units are used.
std::vector<hwloc_obj_t> CoresOf(hwloc_topology_t topology,
                                 hwloc_const_bitmap_t cpus) {
  const hwloc_obj_type_t type =
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE
                                                             : HWLOC_OBJ_PU;
  std::vector<hwloc_obj_t> cores;
  for (hwloc_obj_t core = hwloc_get_next_obj_by_type(topology, type, nullptr);
       core != nullptr;
       core = hwloc_get_next_obj_by_type(topology, type, core)) {
    if (hwloc_bitmap_intersects(core->cpuset, cpus)) cores.push_back(core);
  }
  return cores;
}

bool OnOneNumaNode(hwloc_obj_t a, hwloc_obj_t b) {
  return hwloc_bitmap_intersects(a->nodeset, b->nodeset) != 0;
}

std::vector<int> NumbersOf(const cpu_set_t& cpus) {
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) numbers.push_back(cpu);
  }
  return numbers;
}

// The demand of this rank and the others of its host. Nullopt if a rank may use
// only some of this rank's CPUs: then it is unknown where threads compute.
std::optional<CpuDemand> DemandOf(const std::vector<cpu_set_t>& cpus_of_rank,
                                  const collective::Topology& topology) {
  const auto rank = static_cast<size_t>(topology.rank);
  const cpu_set_t& own = cpus_of_rank[rank];
  CpuDemand demand = {.cpus = NumbersOf(own),
                      .compute_threads = OpenMpThreads(),
                      .processes = 0,
                      .index = 0};
  for (size_t other = 0; other < cpus_of_rank.size(); ++other) {
    // Hosts are compared by name, since virtual nodes share a host.
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

int OpenMpThreads() {
  auto* max_threads = OpenMpFunction<int()>("omp_get_max_threads");
  return max_threads != nullptr ? max_threads() : 1;
}

std::string FormatCpus(const cpu_set_t& cpus) {
  const Bitmap bitmap = BitmapOf(NumbersOf(cpus));
  char* list = nullptr;
  if (bitmap == nullptr ||
      hwloc_bitmap_list_asprintf(&list, bitmap.get()) < 0) {
    return "";
  }
  const std::unique_ptr<char, decltype(&free)> owned(list, &free);
  return list;
}

cpu_set_t ProcessCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  // The call fails if the machine has more than CPU_SETSIZE CPUs; threads then
  // keep the mask that they inherit.
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
  AddOpenMpPlaces(cpus);
  return cpus;
}

ScopedAffinity::ScopedAffinity(const cpu_set_t& cpus) {
  if (CPU_COUNT(&cpus) == 0 ||
      pthread_getaffinity_np(pthread_self(), sizeof(former_), &former_) != 0) {
    return;
  }
  changed_ = !CPU_EQUAL(&cpus, &former_) &&
             pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) == 0;
}

ScopedAffinity::~ScopedAffinity() {
  if (changed_) {
    pthread_setaffinity_np(pthread_self(), sizeof(former_), &former_);
  }
}

std::optional<int> SpareCpu(hwloc_topology* topology, const CpuDemand& demand) {
  const Bitmap cpus = BitmapOf(demand.cpus);
  if (cpus == nullptr) return std::nullopt;
  const std::vector<hwloc_obj_t> cores = CoresOf(topology, cpus.get());
  const auto compute = static_cast<size_t>(demand.compute_threads) *
                       static_cast<size_t>(demand.processes);
  const auto coordinators = static_cast<size_t>(demand.processes);
  if (cores.size() < compute + coordinators) return std::nullopt;

  // Cores in the order in which they are taken.
  std::vector<hwloc_obj_t> spare(cores.rbegin(),
                                 cores.rend() - static_cast<long>(compute));
  std::stable_partition(spare.begin(), spare.end(), [&](hwloc_obj_t core) {
    return OnOneNumaNode(core, cores.front());
  });
  hwloc_obj_t chosen = spare[static_cast<size_t>(demand.index)];

  const Bitmap usable(hwloc_bitmap_alloc());
  if (usable == nullptr) return std::nullopt;
  hwloc_bitmap_and(usable.get(), chosen->cpuset, cpus.get());
  return hwloc_bitmap_first(usable.get());
}

std::optional<int> SpareCpuHere(const CpuDemand& demand) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return std::nullopt;
  std::optional<int> cpu;
  if (hwloc_topology_load(topology) == 0) cpu = SpareCpu(topology, demand);
  hwloc_topology_destroy(topology);
  return cpu;
}

namespace {

int CountRanksOnTheSame(size_t rank, const std::vector<cpu_set_t>& cpus_of_rank,
                        const std::vector<std::string>& host_of_rank) {
  int count = 0;
  for (size_t other = 0; other < cpus_of_rank.size(); ++other) {
    count += host_of_rank[other] == host_of_rank[rank] &&
             CPU_EQUAL(&cpus_of_rank[other], &cpus_of_rank[rank]);
  }
  return count;
}

}  // namespace

bool IsOversubscribed(size_t rank, const std::vector<cpu_set_t>& cpus_of_rank,
                      const std::vector<std::string>& host_of_rank) {
  cpu_set_t of_host;
  CPU_ZERO(&of_host);
  int ranks_of_host = 0;
  for (size_t other = 0; other < cpus_of_rank.size(); ++other) {
    if (host_of_rank[other] != host_of_rank[rank]) continue;
    CPU_OR(&of_host, &of_host, &cpus_of_rank[other]);
    ++ranks_of_host;
  }
  return ranks_of_host > CPU_COUNT(&of_host) ||
         CountRanksOnTheSame(rank, cpus_of_rank, host_of_rank) >
             CPU_COUNT(&cpus_of_rank[rank]);
}

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

  const auto rank = static_cast<size_t>(topology.rank);
  CoordinatorCpu result = {.of_its_own = std::nullopt,
                           .oversubscribed = IsOversubscribed(
                               rank, cpus_of_rank, topology.host_of_rank),
                           .ranks_on_the_same = CountRanksOnTheSame(
                               rank, cpus_of_rank, topology.host_of_rank)};
  if (choice == "none") return result;
  int number = 0;
  if (absl::SimpleAtoi(choice, &number)) {
    logger.Debug(
        absl::StrCat("background thread: CPU ", number, ", as configured"));
    result.of_its_own = number;
    return result;
  }
  const std::optional<CpuDemand> demand = DemandOf(cpus_of_rank, topology);
  if (!demand.has_value()) {
    logger.Debug(
        "background thread: no CPU of its own: ranks of this host share some "
        "CPUs, but not the same");
    return result;
  }
  const std::optional<int> cpu = SpareCpuHere(*demand);
  result.of_its_own = cpu;
  logger.Debug(absl::StrCat(
      "background thread: ",
      cpu.has_value() ? absl::StrCat("CPU ", *cpu) : "no CPU",
      " of its own: ", demand->compute_threads, " compute threads in each of ",
      demand->processes, " processes on ", demand->cpus.size(), " CPUs",
      cpu.has_value() ? "; use OMP_PLACES to keep compute threads off it"
                      : ""));
  return result;
}

}  // namespace hvdlite::internal
