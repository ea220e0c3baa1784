// Which processes run, from /proc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/support/system_files.h"

namespace hvdlite::doctor {

struct ProcessTime {
  std::string name;
  int64_t ticks = 0;  // of CPU time, in user and kernel mode
  int64_t threads = 1;
  int cpu = -1;  // that it ran on last
};

// A line of /proc/PID/stat; nullopt if it is none.
std::optional<ProcessTime> ParseProcessStat(absl::string_view line);

// By process id; threads count for their process.
using ProcessTimes = std::map<int, ProcessTime>;
ProcessTimes ReadProcessTimes(const SystemFiles& files);

// "python3 (pid 123)": who, but for `own`, ran most on `cpu` between the two;
// empty if nobody did. A process of several threads counts where it ran last
// only if no other did run there, and never if it is called like `own`: the
// other ranks compute on CPUs of their own meanwhile.
std::string CompetitorOn(int cpu, const ProcessTimes& before,
                         const ProcessTimes& after, int own);

}  // namespace hvdlite::doctor
