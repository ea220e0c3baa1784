#include "negotiation/world/process_cpus.h"

#include <dlfcn.h>
#include <pthread.h>

#include <vector>

namespace hvdlite::internal {
namespace {

// A function of whichever OpenMP runtime LibTorch brought into the process, or
// null. Looked up, not linked: linking could bring in a second runtime.
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

}  // namespace

cpu_set_t ProcessCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  // Fails where the machine has more than CPU_SETSIZE CPUs; threads then keep
  // the mask they inherit.
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
  AddOpenMpPlaces(cpus);
  return cpus;
}

int OpenMpThreads() {
  auto* max_threads = OpenMpFunction<int()>("omp_get_max_threads");
  return max_threads != nullptr ? max_threads() : 1;
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

}  // namespace hvdlite::internal
