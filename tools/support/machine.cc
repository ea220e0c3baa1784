#include "tools/support/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/support/processor.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

int CountSockets(const std::vector<int>& cpus) {
  std::set<std::string> sockets;
  for (const int cpu : cpus) {
    std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                                    "/topology/physical_package_id"));
    std::string socket;
    if (std::getline(file, socket)) sockets.insert(socket);
  }
  return std::max(1, static_cast<int>(sockets.size()));
}

std::string SiblingsOf(int cpu) {
  std::ifstream file(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                                  "/topology/thread_siblings_list"));
  std::string siblings;
  std::getline(file, siblings);
  return siblings;
}

int CountNumaNodes() {
  std::error_code error;
  int nodes = 0;
  for (const auto& entry :
       fs::directory_iterator("/sys/devices/system/node", error)) {
    // Without CPUs it is memory alone.
    std::ifstream file(entry.path() / "cpulist");
    std::string cpus;
    if (std::getline(file, cpus) && !cpus.empty()) ++nodes;
  }
  return std::max(1, nodes);
}

std::set<std::string> CpuFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::stringstream cpuinfo;
  cpuinfo << file.rdbuf();
  return base::CpuFlags(cpuinfo.str());
}

}  // namespace

int CountCores(const std::vector<int>& cpus,
               const std::function<std::string(int cpu)>& siblings) {
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const std::string core = siblings(cpu);
    cores.insert(core.empty() ? absl::StrCat("cpu", cpu) : core);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

Machine ThisMachine() {
  utsname system = {};
  uname(&system);
  const std::vector<int> cpus = base::AllowedCpus();
  return {.host = system.nodename,
          .cores = CountCores(cpus, SiblingsOf),
          .cpus = std::max(1, static_cast<int>(cpus.size())),
          .sockets = CountSockets(cpus),
          .numa_nodes = CountNumaNodes(),
          .cpu_flags = CpuFlags()};
}

std::map<std::string, std::string> RelevantVariables(
    const base::Environment& environment) {
  constexpr absl::string_view kPrefixes[] = {"HVDLITE_",
                                             "OMP_",
                                             "GOMP_",
                                             "KMP_",
                                             "MKL_",
                                             "DNNL_",
                                             "ONEDNN_",
                                             "OPENBLAS_",
                                             "GOTO_",
                                             "BLIS_",
                                             "MALLOC_",
                                             "TCMALLOC_",
                                             "GLIBC_TUNABLES",
                                             "LD_PRELOAD",
                                             "LD_LIBRARY_PATH",
                                             "UCX_",
                                             "OMPI_MCA_",
                                             "MPICH_",
                                             "FI_",
                                             "I_MPI_",
                                             "XOS_MMM_",
                                             "ATEN_",
                                             "TORCH_"};
  std::map<std::string, std::string> relevant;
  for (const std::string& name : environment.names()) {
    const bool matters = std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                                     [&](absl::string_view prefix) {
                                       return absl::StartsWith(name, prefix);
                                     });
    if (matters) relevant[name] = environment.get(name).value_or("");
  }
  return relevant;
}

}  // namespace hvdlite::scaling_sweep
