#include "tools/doctor/watch.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/core_use.h"

namespace hvdlite::doctor {
namespace {

// The CPUs of each core; cores are in the order of their first CPUs.
std::vector<std::vector<int>> CpusByCore(const support::SystemFiles& files,
                                         const support::CoreLook& look) {
  std::vector<std::vector<int>> cores;
  std::map<int, size_t> known;
  for (const auto& [cpu, times] : look.cpus) {
    const auto [core, is_new] =
        known.try_emplace(support::CoreOf(cpu, files), cores.size());
    if (is_new) cores.emplace_back();
    cores[core->second].push_back(cpu);
  }
  return cores;
}

std::string ProcessesText(const support::CoreUse& core) {
  // /proc lists only this container's processes, but the load of all CPUs.
  constexpr double kBusyShare = 0.2;
  if (core.processes.empty() && core.busy >= kBusyShare) {
    return "no visible process: short processes or another container";
  }
  return absl::StrJoin(core.processes, ", ",
                       [](std::string* out, const support::ProcessUse& use) {
                         out->append(support::ProcessText(use));
                       });
}

}  // namespace

std::string WatchCores(const support::SystemFiles& files,
                       absl::Duration duration, const base::Clock& clock,
                       const std::function<void(absl::Duration)>& pause) {
  support::CoreWatch watch(files);
  const support::CoreLook first = watch.Look(clock.NowNanos());
  support::CoreLook last = first;
  while (last.time_ns - first.time_ns < absl::ToInt64Nanoseconds(duration)) {
    const absl::Duration passed =
        absl::Nanoseconds(last.time_ns - first.time_ns);
    pause(std::min(absl::Seconds(1), duration - passed));
    last = watch.Look(clock.NowNanos());
  }
  const std::vector<support::CoreUse> cores =
      UseBetween(watch, first, last, CpusByCore(files, last));
  std::vector<std::string> labels;
  for (const support::CoreUse& core : cores) {
    labels.push_back(ProcessesText(core));
  }
  return absl::StrFormat(
      "cores in %.3g s (%s):\n%s",
      1e-9 * static_cast<double>(last.time_ns - first.time_ns),
      support::kCoreBarLegend, support::CoreBars(cores, labels));
}

}  // namespace hvdlite::doctor
