// What the cores of this machine did between two looks at them: how busy each
// was, and with whose threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "support/machine.h"

namespace hvdlite::support {

// Of a CPU since the system's start, in seconds.
struct CpuTimes {
  double busy = 0;
  double iowait = 0;  // idle while something waits for a disk
  double stolen = 0;  // that a hypervisor took
  double idle = 0;
};

// By CPU, from /proc/stat.
std::map<int, CpuTimes> ReadCpuTimes(const SystemFiles& files);

// Of a process or a thread.
struct ProcessTime {
  std::string name;
  int64_t ticks = 0;  // of CPU time, in user and kernel mode
  int64_t threads = 1;
  int cpu = -1;  // that it ran on last
  int parent = 0;
  int group = 0;
  int64_t start_ticks = 0;  // since the system's start
};

// A line of /proc/PID/stat; nullopt if it is none.
std::optional<ProcessTime> ParseProcessStat(absl::string_view line);

// By process id; threads count for their process.
using ProcessTimes = std::map<int, ProcessTime>;
ProcessTimes ReadProcessTimes(const SystemFiles& files);

// Sums since a watch began.
struct CoreLook {
  int64_t time_ns = 0;
  std::map<int, CpuTimes> cpus;
  // Seconds of processes, by CPU and process id.
  std::map<std::pair<int, pid_t>, double> seconds;
};

// Looks at all CPUs and processes of a machine again and again. Time of a
// thread between two looks counts for the CPU where it ran last, so that
// threads that wander want looks that are close together.
class CoreWatch {
 public:
  explicit CoreWatch(SystemFiles files) : files_(std::move(files)) {}

  CoreLook Look(int64_t now_ns);
  // Of a process of a look; "" if there is none of that id.
  std::string NameOf(pid_t process) const;

 private:
  struct Process {
    int64_t ticks = 0;  // at the last look
    std::map<int, int64_t> threads = {};
  };

  SystemFiles files_;
  bool has_looked_ = false;
  std::map<pid_t, Process> processes_;
  std::map<pid_t, std::string> names_;
  std::map<std::pair<int, pid_t>, double> seconds_;
};

struct ProcessUse {
  std::string name;
  pid_t id = 0;
  double share = 0;  // of the core's time

  bool operator==(const ProcessUse&) const = default;
};

// Shares of the time, from 0 to 1, of a core's busiest hardware thread; what is
// left was idle.
struct CoreUse {
  std::vector<int> cpus;  // its hardware threads
  double busy = 0;
  double iowait = 0;
  double stolen = 0;
  // On any of its hardware threads, at least a twentieth of the time; who had
  // most comes first.
  std::vector<ProcessUse> processes = {};

  bool operator==(const CoreUse&) const = default;
};

// What `cores`, as their CPUs, did between two looks of `watch`.
std::vector<CoreUse> UseBetween(const CoreWatch& watch, const CoreLook& first,
                                const CoreLook& last,
                                const std::vector<std::vector<int>>& cores);

// "train_resnet50 (pid 71) 52 %".
std::string ProcessText(const ProcessUse& process);

// A line for each core: its CPUs, a bar, the busy share, and its label.
std::string CoreBars(const std::vector<CoreUse>& cores,
                     const std::vector<std::string>& labels);
// What a bar's signs mean.
inline constexpr char kCoreBarLegend[] =
    "# busy, w waiting for a disk, s taken by the hypervisor, . idle";

}  // namespace hvdlite::support
