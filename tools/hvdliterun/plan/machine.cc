#include "tools/hvdliterun/plan/machine.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const {
    hwloc_topology_destroy(topology);
  }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

absl::StatusOr<Topology> NewTopology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return absl::InternalError("cannot start hwloc: out of memory?");
  }
  return Topology(topology);
}

hwloc_obj_type_t CoreType(hwloc_topology_t topology) {
  // If the system reports no cores, its processing units count as cores.
  return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE
                                                                : HWLOC_OBJ_PU;
}

int PackageOf(hwloc_topology_t topology, hwloc_obj_t core) {
  const hwloc_obj_t package =
      hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, core);
  return package != nullptr ? static_cast<int>(package->logical_index) : 0;
}

// The objects in the machine's order.
std::vector<hwloc_obj_t> ObjectsOf(hwloc_topology_t topology,
                                   hwloc_obj_type_t type) {
  std::vector<hwloc_obj_t> objects;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) !=
         nullptr) {
    objects.push_back(object);
  }
  return objects;
}

// The first NUMA node that contains the CPUs of this core.
int NumaNodeOf(hwloc_topology_t topology, hwloc_obj_t core) {
  for (const hwloc_obj_t node : ObjectsOf(topology, HWLOC_OBJ_NUMANODE)) {
    if (hwloc_bitmap_isincluded(core->cpuset, node->cpuset)) {
      return static_cast<int>(node->os_index);
    }
  }
  return 0;
}

std::vector<int> MemoryNodesOf(hwloc_topology_t topology) {
  const hwloc_const_nodeset_t allowed =
      hwloc_topology_get_allowed_nodeset(topology);
  std::vector<int> nodes;
  for (const hwloc_obj_t node : ObjectsOf(topology, HWLOC_OBJ_NUMANODE)) {
    if (hwloc_bitmap_isset(allowed, node->os_index) != 0) {
      nodes.push_back(static_cast<int>(node->os_index));
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<MachineCache> CachesOf(hwloc_topology_t topology) {
  std::vector<MachineCache> caches;
  for (const auto& [level, type] :
       {std::pair(2, HWLOC_OBJ_L2CACHE), std::pair(3, HWLOC_OBJ_L3CACHE)}) {
    const std::vector<hwloc_obj_t> found = ObjectsOf(topology, type);
    if (found.empty() || found[0]->attr->cache.size == 0) continue;
    caches.push_back(
        {.level = level,
         .count = static_cast<int>(found.size()),
         .bytes = static_cast<int64_t>(found[0]->attr->cache.size)});
  }
  return caches;
}

// The machine of a loaded topology, only with the CPUs in `usable`.
absl::StatusOr<Machine> MachineOfTopology(hwloc_topology_t topology,
                                          hwloc_const_bitmap_t usable) {
  Machine machine;
  std::set<int> nodes;
  for (const hwloc_obj_t core : ObjectsOf(topology, CoreType(topology))) {
    MachineCore entry;
    unsigned cpu = 0;
    hwloc_bitmap_foreach_begin(cpu, core->cpuset) {
      if (hwloc_bitmap_isset(usable, cpu)) {
        entry.cpus.push_back(static_cast<int>(cpu));
      }
    }
    hwloc_bitmap_foreach_end();
    if (entry.cpus.empty()) continue;
    entry.package = PackageOf(topology, core);
    entry.numa_node = NumaNodeOf(topology, core);
    nodes.insert(entry.numa_node);
    machine.cores.push_back(std::move(entry));
  }
  if (machine.cores.empty()) {
    return absl::FailedPreconditionError(
        "hwloc finds no CPU that this process may use");
  }
  machine.numa_nodes.assign(nodes.begin(), nodes.end());
  machine.memory_nodes = MemoryNodesOf(topology);
  machine.caches = CachesOf(topology);
  return machine;
}

}  // namespace

int Machine::packages() const {
  std::set<int> numbers;
  for (const MachineCore& core : cores) numbers.insert(core.package);
  return static_cast<int>(numbers.size());
}

int Machine::cpus() const {
  size_t count = 0;
  for (const MachineCore& core : cores) count += core.cpus.size();
  return static_cast<int>(count);
}

std::string Machine::Describe() const {
  const auto counted = [](size_t count, const char* what) {
    return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
  };
  std::string text =
      absl::StrCat(counted(static_cast<size_t>(packages()), "package"), ", ",
                   counted(numa_nodes.size(), "NUMA node"), ", ",
                   counted(cores.size(), "core"), ", ",
                   counted(static_cast<size_t>(cpus()), "hardware thread"));
  for (const MachineCache& cache : caches) {
    absl::StrAppend(&text, ", ", cache.count, " L", cache.level, " of ",
                    cache.bytes >> 10, " KiB");
  }
  return text;
}

absl::StatusOr<Machine> MachineOf(const std::string& text) {
  HVDLITE_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  const bool is_file = absl::EndsWith(text, ".xml");
  const int error =
      is_file ? hwloc_topology_set_xml(topology.get(), text.c_str())
              : hwloc_topology_set_synthetic(topology.get(), text.c_str());
  if (error != 0 && is_file) {
    return absl::InvalidArgumentError(absl::StrCat(
        text,
        " is not a readable topology in hwloc's XML format; make one with "
        "'lstopo ",
        text, "'"));
  }
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is neither a synthetic topology of hwloc, such as "
        "'pack:2 [numa] core:9 pu:2', nor a file that ends in .xml"));
  }
  if (hwloc_topology_load(topology.get()) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hwloc cannot load '", text, "': ", std::strerror(errno)));
  }
  return MachineOfTopology(topology.get(),
                           hwloc_topology_get_allowed_cpuset(topology.get()));
}

absl::StatusOr<Machine> ThisMachine() {
  HVDLITE_ASSIGN_OR_RETURN(const Topology topology, NewTopology());
  if (hwloc_topology_load(topology.get()) != 0) {
    return absl::InternalError(absl::StrCat(
        "hwloc cannot read this machine's topology: ", std::strerror(errno)));
  }
  const Bitmap usable(hwloc_bitmap_alloc());
  if (usable == nullptr) return absl::InternalError("no memory");
  const hwloc_const_cpuset_t allowed =
      hwloc_topology_get_allowed_cpuset(topology.get());
  if (hwloc_get_cpubind(topology.get(), usable.get(), HWLOC_CPUBIND_PROCESS) !=
      0) {
    hwloc_bitmap_copy(usable.get(), allowed);
  }
  hwloc_bitmap_and(usable.get(), usable.get(), allowed);
  return MachineOfTopology(topology.get(), usable.get());
}

}  // namespace hvdlite::launch
