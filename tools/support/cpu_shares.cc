#include "tools/support/cpu_shares.h"

#include <sched.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot tell the CPUs of this process");
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void BindThread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot bind a process to its CPUs");
  }
}

std::vector<std::vector<int>> DivideCpus(const std::vector<int>& cpus,
                                         int64_t shares) {
  const int64_t count = std::ssize(cpus);
  if (shares > count) {
    throw InputError("--instances is " + std::to_string(shares) +
                     ", but this process may use " + std::to_string(count) +
                     " CPUs; expected at most as many");
  }
  std::vector<std::vector<int>> result;
  auto first = cpus.begin();
  for (int64_t share = 0; share < shares; ++share) {
    const auto last = first + count / shares + (share < count % shares ? 1 : 0);
    result.emplace_back(first, last);
    first = last;
  }
  return result;
}

}  // namespace hvdlite::trainers
