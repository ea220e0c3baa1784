// Shows what the cores of this machine did between two samples: how busy each
// was, and which processes used it.
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

// Times of a CPU since the system's start, in seconds.
struct CpuTimes {
  double busy = 0;
  double iowait = 0;  // idle while waiting for a disk
  double stolen = 0;  // taken by the hypervisor
  double idle = 0;
};

// Times by CPU, from /proc/stat.
std::map<int, CpuTimes> ReadCpuTimes(const SystemFiles& files);

// CPU time of a process or a thread.
struct ProcessTime {
  std::string name;
  int64_t ticks = 0;  // CPU time in user and kernel mode
  int64_t threads = 1;
  int cpu = -1;  // the CPU that it last ran on
  int parent = 0;
  int group = 0;
  int64_t start_ticks = 0;  // since the system's start
};

// Parses a line of /proc/PID/stat; nullopt if it is malformed.
std::optional<ProcessTime> ParseProcessStat(absl::string_view line);

// By process id, with the time of all threads.
using ProcessTimes = std::map<int, ProcessTime>;
ProcessTimes ReadProcessTimes(const SystemFiles& files);

// Sums since the CoreWatch was first used.
struct CoreLook {
  int64_t time_ns = 0;
  std::map<int, CpuTimes> cpus;
  // CPU seconds by CPU and process id.
  std::map<std::pair<int, pid_t>, double> seconds;
};

// Samples all CPUs and processes of a machine repeatedly. The time of a thread
// between two samples counts for the CPU on which it ran last. So samples must
// be frequent if threads migrate.
class CoreWatch {
 public:
  explicit CoreWatch(SystemFiles files) : files_(std::move(files)) {}

  CoreLook Look(int64_t now_ns);
  // Name of a process in a sample; "" if the id is unknown.
  std::string NameOf(pid_t process) const;

 private:
  struct Process {
    int64_t ticks = 0;  // at the last sample
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
  double share = 0;  // fraction of the core's time

  bool operator==(const ProcessUse&) const = default;
};

// Fractions of the time of a core's busiest hardware thread, 0 to 1. The rest
// was idle.
struct CoreUse {
  std::vector<int> cpus;  // its hardware threads
  double busy = 0;
  double iowait = 0;
  double stolen = 0;
  // Processes that used at least a twentieth of the core's time, on any of its
  // hardware threads; the busiest first.
  std::vector<ProcessUse> processes = {};

  bool operator==(const CoreUse&) const = default;
};

// Use of `cores`, given by their CPUs, between two samples of `watch`.
std::vector<CoreUse> UseBetween(const CoreWatch& watch, const CoreLook& first,
                                const CoreLook& last,
                                const std::vector<std::vector<int>>& cores);

// "train_resnet50 (pid 71) 52 %".
std::string ProcessText(const ProcessUse& process);

// One line for each core: CPUs, a bar, the busy share and the label.
std::string CoreBars(const std::vector<CoreUse>& cores,
                     const std::vector<std::string>& labels);
// Meaning of the characters of a bar.
inline constexpr char kCoreBarLegend[] =
    "# busy, w waiting for a disk, s taken by the hypervisor, . idle";

}  // namespace hvdlite::support
