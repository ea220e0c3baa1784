#include "tools/hvdlite_bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

namespace hvdlite::tools {
namespace {

// The value of the first line "key : value" of a file of /proc.
std::string ProcValue(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "unknown";
}

// The first line that a command prints; empty if it fails.
std::string FirstLineOf(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char line[256] = "";
  const bool read = std::fgets(line, sizeof(line), pipe) != nullptr;
  const std::string text(read ? line : "");
  if (pclose(pipe) != 0) return "";
  return text.substr(0, text.find('\n'));
}

std::string CommitOfSource() {
  const std::string commit =
      FirstLineOf("git -C '" HVDLITE_SOURCE_FOLDER
                  "' describe --always --dirty --abbrev=12 2>/dev/null");
  return commit.empty() ? "unknown" : commit;
}

bool ChangesBehaviour(const std::string& name) {
  for (const char* prefix :
       {"MALLOC_", "UCX_", "HVDLITE_", "OMP_", "OPENBLAS_", "LD_PRELOAD",
        "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_coll", "OMPI_MCA_mpi_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

std::map<std::string, std::string> DescribeMachine(
    const base::Environment& environment, const std::string& commit) {
  utsname system;
  uname(&system);
  std::map<std::string, std::string> machine = {
      {"processor", ProcValue("/proc/cpuinfo", "model name")},
      {"architecture", system.machine},
      {"processors", std::to_string(sysconf(_SC_NPROCESSORS_ONLN))},
      {"memory", ProcValue("/proc/meminfo", "MemTotal")},
      {"kernel", system.release},
      {"compiler", __VERSION__},
      {"commit", commit.empty() ? CommitOfSource() : commit},
  };
  for (const std::string& name : environment.names()) {
    if (ChangesBehaviour(name)) machine[name] = *environment.get(name);
  }
  return machine;
}

std::string AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return "unknown";
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
    }
  }
  return cpus;
}

bool BoundToOneCoreEach(const std::vector<std::string>& allowed,
                        const std::vector<std::string>& node) {
  std::set<std::string> taken;
  for (size_t rank = 0; rank < allowed.size(); ++rank) {
    // The threads of a core have the same list of siblings.
    std::set<std::string> cores;
    for (size_t at = 0; at <= allowed[rank].size();) {
      const size_t comma =
          std::min(allowed[rank].find(',', at), allowed[rank].size());
      const std::string cpu = allowed[rank].substr(at, comma - at);
      std::ifstream siblings("/sys/devices/system/cpu/cpu" + cpu +
                             "/topology/thread_siblings_list");
      std::string core;
      cores.insert(std::getline(siblings, core) ? core : cpu);
      at = comma + 1;
    }
    if (cores.size() != 1) return false;
    if (!taken.insert(node[rank] + " " + *cores.begin()).second) return false;
  }
  return true;
}

}  // namespace hvdlite::tools
