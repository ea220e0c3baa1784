// Facts about this machine from the kernel, and the environment variables that
// affect performance.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace hvdlite::support {

// Reads files of /proc and /sys below a root: "" is this machine; tests create
// their own trees.
class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // The whole file; nullopt if it cannot be read.
  std::optional<std::string> Text(const std::string& path) const;
  // The first line without surrounding white space; nullopt as above.
  std::optional<std::string> Line(const std::string& path) const;
  // The first line as a number; nullopt if it is not a number.
  std::optional<double> Number(const std::string& path) const;
  // Sorted names in a directory; empty if it cannot be read.
  std::vector<std::string> Names(const std::string& directory) const;

 private:
  std::string root_;
};

// The value of the first line "key : value" in a text of /proc; empty: none.
std::string ValueOf(const std::string& text, const std::string& key);

// The choice in brackets of "always [madvise] never"; the whole text without
// brackets.
std::string BracketedChoice(const std::string& text);

struct MachineFacts {
  std::string host = {};
  // The model, such as "A64FX"; the architecture if there is none, as on Arm.
  std::string processor = {};
  int cores = 1;  // cores that this process may use
  int cpus = 1;   // hardware threads that it may use
  int sockets = 1;
  int numa_nodes = 1;
  std::set<std::string> cpu_flags =
      {};  // names of /proc/cpuinfo, such as "avx2"
};

MachineFacts ThisMachine(const SystemFiles& files = SystemFiles());

// Facts for the results of a measurement, by name: "host", "processor",
// "cores", "memory", "kernel". "cores" counts all online cores of the machine,
// and adds the hardware threads that this process may use if they are fewer.
std::vector<std::pair<std::string, std::string>> DescribeMachine(
    const SystemFiles& files = SystemFiles());

// CPU time since the start: of all CPUs of the machine (without time that a
// hypervisor took), of this process, and of its children that were waited for,
// with their descendants.
struct CpuSeconds {
  double machine = 0;  // 0: unknown
  double process = 0;
  double children = 0;
};
CpuSeconds CpuSecondsNow(const SystemFiles& files = SystemFiles());

// Describes the load by other programs: "0.40 of 2 CPUs: busy", or "0.02 of 2
// CPUs: quiet" below a twentieth of the CPUs.
std::string DescribeOtherPrograms(double others_cpus, int cpus);

// All online CPUs of the machine, also those that this process may not use.
std::vector<int> OnlineCpus(const SystemFiles& files = SystemFiles());

// The lowest CPU of the core of `cpu`; `cpu` itself if unknown.
int CoreOf(int cpu, const SystemFiles& files = SystemFiles());

// The cores of the hardware threads `cpus`, as for CoreOf(), ascending.
std::vector<int> CoresOf(const std::vector<int>& cpus,
                         const SystemFiles& files = SystemFiles());

// The variables of `environment` that change how programs compute, allocate
// memory and communicate.
std::map<std::string, std::string> RelevantVariables(
    const base::Environment& environment);

// Seconds of a monotonic clock.
double WallSeconds();

// CPU time of the calling thread: time of other processes does not count.
double ThreadCpuSeconds();

}  // namespace hvdlite::support
