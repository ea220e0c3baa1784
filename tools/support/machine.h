// What a sweep needs to know of the machine that it runs on.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/environment.h"

namespace hvdlite::scaling_sweep {

struct Machine {
  std::string host = {};
  int cores = 1;  // that this process may use; not their hardware threads
  int cpus = 1;   // the hardware threads
  int sockets = 1;
  int numa_nodes = 1;
  std::set<std::string> cpu_flags =
      {};  // as /proc/cpuinfo names them, as "avx2"
};

Machine ThisMachine();

// Of `cpus`; `siblings` is the list of the CPUs of a CPU's core, "" if nobody
// knows.
int CountCores(const std::vector<int>& cpus,
               const std::function<std::string(int cpu)>& siblings);

// Of `environment`, the variables that change how programs compute, allocate
// and communicate.
std::map<std::string, std::string> RelevantVariables(
    const base::Environment& environment);

}  // namespace hvdlite::scaling_sweep
