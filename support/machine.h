// What the kernel tells of this machine, and what programs on it depend on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace hvdlite::support {

// Reads files of /proc and /sys below a root: "" is the machine; tests write
// trees of their own.
class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // The whole file; nullopt if it cannot be read.
  std::optional<std::string> Text(const std::string& path) const;
  // The first line, without white space around it; nullopt as above.
  std::optional<std::string> Line(const std::string& path) const;
  // The first line as a number; nullopt if it is none.
  std::optional<double> Number(const std::string& path) const;
  // Names in a folder, sorted; empty if it cannot be read.
  std::vector<std::string> Names(const std::string& folder) const;

 private:
  std::string root_;
};

// The value of the first line "key : value" of a text of /proc; empty: none.
std::string ValueOf(const std::string& text, const std::string& key);

// The choice in brackets of "always [madvise] never"; the whole text if none.
std::string BracketedChoice(const std::string& text);

struct MachineFacts {
  std::string host = {};
  // Its model, or the architecture where none is told, as on Arm; "A64FX".
  std::string processor = {};
  int cores = 1;  // that this process may use; not their hardware threads
  int cpus = 1;   // the hardware threads
  int sockets = 1;
  int numa_nodes = 1;
  std::set<std::string> cpu_flags =
      {};  // as /proc/cpuinfo names them, as "avx2"
};

MachineFacts ThisMachine(const SystemFiles& files = SystemFiles());

// What results of a measurement should say of the machine, by name: "host",
// "processor", "cores", "memory", "kernel". The cores are all of the
// machine's that are online; with them stands how many hardware threads this
// process may use, if that is fewer.
std::vector<std::pair<std::string, std::string>> DescribeMachine(
    const SystemFiles& files = SystemFiles());

// CPU time since the beginning: that all CPUs of the machine have worked (what
// a hypervisor took for others counts), that this process has, and that its
// children had that were waited for, with theirs.
struct CpuSeconds {
  double machine = 0;  // 0: the kernel does not tell
  double process = 0;
  double children = 0;
};
CpuSeconds CpuSecondsNow(const SystemFiles& files = SystemFiles());

// Of programs that were not measured, "0.40 of 2 CPUs: busy" or, if they took
// less than a twentieth of the CPUs, "0.02 of 2 CPUs: quiet".
std::string DescribeOtherPrograms(double others_cpus, int cpus);

// Of the machine, whichever this process may use.
std::vector<int> OnlineCpus(const SystemFiles& files = SystemFiles());

// The lowest CPU of the core that `cpu` is a hardware thread of; `cpu` where
// nobody knows.
int CoreOf(int cpu, const SystemFiles& files = SystemFiles());

// That the hardware threads `cpus` belong to, ascending.
std::vector<int> CoresOf(const std::vector<int>& cpus,
                         const SystemFiles& files = SystemFiles());

// Of `environment`, the variables that change how programs compute, allocate
// and communicate.
std::map<std::string, std::string> RelevantVariables(
    const base::Environment& environment);

// Seconds of a monotonic clock.
double WallSeconds();

// That the calling thread has run: what other processes take does not count.
double ThreadCpuSeconds();

}  // namespace hvdlite::support
