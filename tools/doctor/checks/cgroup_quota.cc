#include "tools/doctor/checks/cgroup_quota.h"

#include <cstdio>
#include <optional>
#include <string>

namespace hvdlite::doctor {
namespace {

std::optional<double> CgroupV2Quota(const std::optional<std::string>& line) {
  // "200000 100000" or "max 100000"
  double quota = 0;
  double period = 0;
  if (!line.has_value() ||
      std::sscanf(line->c_str(), "%lf %lf", &quota, &period) != 2 ||
      period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

std::optional<double> CgroupV1Quota(const SystemFiles& files,
                                    const std::string& folder) {
  const std::optional<double> quota =
      files.Number(folder + "/cpu.cfs_quota_us");
  const std::optional<double> period =
      files.Number(folder + "/cpu.cfs_period_us");
  if (!quota.has_value() || !period.has_value() || *quota <= 0 ||
      *period <= 0) {
    return std::nullopt;
  }
  return *quota / *period;
}

}  // namespace

double CgroupQuota(const SystemFiles& files) {
  double smallest = 0;
  const auto take = [&](std::optional<double> quota) {
    if (quota.has_value() && (smallest == 0 || *quota < smallest)) {
      smallest = *quota;
    }
  };
  const std::string groups = files.Text("/proc/self/cgroup").value_or("");
  for (size_t at = 0; at < groups.size();) {
    const size_t end = std::min(groups.find('\n', at), groups.size());
    const std::string line = groups.substr(at, end - at);
    at = end + 1;
    // "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/abc" (version 1)
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers =
        "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    // The group and those above it. In a container, /sys/fs/cgroup may begin
    // at the container's group, which its path does not tell.
    for (std::string path = line.substr(second + 1);;) {
      if (path == "/") path.clear();
      if (v2) {
        take(CgroupV2Quota(files.Line("/sys/fs/cgroup" + path + "/cpu.max")));
      } else {
        take(CgroupV1Quota(files, "/sys/fs/cgroup/cpu" + path));
        take(CgroupV1Quota(files, "/sys/fs/cgroup/cpu,cpuacct" + path));
      }
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return smallest;
}

}  // namespace hvdlite::doctor
