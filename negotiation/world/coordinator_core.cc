#include "negotiation/world/coordinator_core.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>

namespace hvdlite::internal {
namespace {

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

// The cores with one of `cpus`, in the machine's order. A system that does not
// tell cores apart has its processing units for cores.
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

}  // namespace

std::optional<int> SpareCpu(hwloc_topology* topology, const CpuDemand& demand) {
  const Bitmap cpus = BitmapOf(demand.cpus);
  if (cpus == nullptr) return std::nullopt;
  const std::vector<hwloc_obj_t> cores = CoresOf(topology, cpus.get());
  const auto compute = static_cast<size_t>(demand.compute_threads) *
                       static_cast<size_t>(demand.processes);
  const auto coordinators = static_cast<size_t>(demand.processes);
  if (cores.size() < compute + coordinators) return std::nullopt;

  // In the order in which they are taken.
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

bool IsOversubscribed(size_t rank, const std::vector<cpu_set_t>& cpus_of_rank,
                      const std::vector<std::string>& host_of_rank) {
  cpu_set_t of_host;
  CPU_ZERO(&of_host);
  int ranks_of_host = 0;
  int ranks_on_the_same = 0;
  for (size_t other = 0; other < cpus_of_rank.size(); ++other) {
    if (host_of_rank[other] != host_of_rank[rank]) continue;
    CPU_OR(&of_host, &of_host, &cpus_of_rank[other]);
    ++ranks_of_host;
    ranks_on_the_same += CPU_EQUAL(&cpus_of_rank[other], &cpus_of_rank[rank]);
  }
  return ranks_of_host > CPU_COUNT(&of_host) ||
         ranks_on_the_same > CPU_COUNT(&cpus_of_rank[rank]);
}

}  // namespace hvdlite::internal
