// The CPUs that this process may use.
#pragma once

#include <sched.h>

namespace hvdlite::internal {

// Of the whole process, not only of the calling thread: where OMP_PROC_BIND is
// set, the OpenMP runtime binds the initial thread to one place while it loads,
// so that its affinity mask no longer tells; the runtime's places do.
cpu_set_t ProcessCpus();

// How many threads a parallel region that this thread starts would have; 1
// without OpenMP.
int OpenMpThreads();

// While it lives, the calling thread may use all of `cpus`; threads inherit the
// mask of the thread that creates them. Restores the former mask. Does nothing
// where the system refuses.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(const cpu_set_t& cpus);
  ~ScopedAffinity();
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;

 private:
  cpu_set_t former_;
  bool changed_ = false;
};

}  // namespace hvdlite::internal
