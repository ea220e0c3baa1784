#include "tools/doctor/oversubscription_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu_list.h"
#include "tools/doctor/check.h"
#include "tools/doctor/gather_facts.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadFacts, host, cpus, threads, quota)

namespace {

constexpr char kName[] = "oversubscription";

// Ranks of a host that share CPUs, directly or through others.
struct Sharers {
  std::vector<int> ranks;
  std::set<int> cpus;
  int threads = 0;
};

std::vector<Sharers> GroupByCpus(const std::vector<ThreadFacts>& facts,
                                 const std::vector<int>& ranks) {
  std::vector<Sharers> groups;
  for (const int rank : ranks) {
    Sharers group = {.ranks = {rank},
                     .cpus = {facts[rank].cpus.begin(), facts[rank].cpus.end()},
                     .threads = facts[rank].threads};
    std::vector<Sharers> apart;
    for (Sharers& other : groups) {
      const bool overlap =
          std::any_of(other.cpus.begin(), other.cpus.end(),
                      [&](int cpu) { return group.cpus.contains(cpu); });
      if (!overlap) {
        apart.push_back(std::move(other));
        continue;
      }
      group.ranks.insert(group.ranks.end(), other.ranks.begin(),
                         other.ranks.end());
      group.cpus.insert(other.cpus.begin(), other.cpus.end());
      group.threads += other.threads;
    }
    std::sort(group.ranks.begin(), group.ranks.end());
    apart.push_back(std::move(group));
    groups = std::move(apart);
  }
  return groups;
}

std::string Count(size_t count, const char* thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

// What makes the threads fit.
std::string Remedy(size_t ranks, double cpus) {
  const int threads = static_cast<int>(cpus) / static_cast<int>(ranks);
  if (threads >= 1) return absl::StrCat("export OMP_NUM_THREADS=", threads);
  return absl::StrCat("start ",
                      Count(static_cast<size_t>(std::max(cpus, 1.0)), "rank"),
                      " here with OMP_NUM_THREADS=1");
}

// Of ranks that have more threads than CPUs.
Finding TooManyThreads(const Sharers& group, const std::string& host) {
  const bool several = group.ranks.size() > 1;
  return {
      .check = kName,
      .verdict = Verdict::kProblem,
      .seen = absl::StrCat(
          Count(group.ranks.size(), "rank"), " on ", host, " with ",
          Count(group.threads, "thread"), several ? " in all" : "", " on ",
          Count(group.cpus.size(), "CPU"), " (",
          base::FormatCpuList({group.cpus.begin(), group.cpus.end()}),
          "): they take the CPUs from each other"),
      .remedy = absl::StrCat(
          Remedy(group.ranks.size(), static_cast<double>(group.cpus.size())),
          several ? ", or give every rank CPUs of its own: hvdliterun "
                    "--map core, mpirun --bind-to core"
                  : ", or let the rank use more CPUs: mpirun --bind-to "
                    "none"),
      .ranks = group.ranks};
}

// Of all that have enough.
struct Fitting {
  std::vector<int> ranks;
  size_t threads = 0;
  size_t cpus = 0;
};

Finding EnoughCpus(Fitting fitting) {
  std::sort(fitting.ranks.begin(), fitting.ranks.end());
  return {.check = kName,
          .seen = absl::StrCat(Count(fitting.ranks.size(), "rank"), " with ",
                               Count(fitting.threads, "thread"), " on ",
                               Count(fitting.cpus, "CPU")),
          .ranks = std::move(fitting.ranks)};
}

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

int OpenMpThreads(const base::Environment& environment, int cpus) {
  int threads = std::max(cpus, 1);
  // "4,2" has a number for each level of nested regions.
  const auto number = [&](const char* name) {
    const std::string text = environment.get(name).value_or("");
    const absl::StatusOr<int64_t> value =
        base::ParseInteger(text.substr(0, text.find(',')), 1, 1 << 20);
    return value.ok() ? std::optional<int>(static_cast<int>(*value))
                      : std::nullopt;
  };
  threads = number("OMP_NUM_THREADS").value_or(threads);
  return std::min(threads, number("OMP_THREAD_LIMIT").value_or(threads));
}

std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks) {
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks_of_host[ranks[rank].host].push_back(static_cast<int>(rank));
  }
  std::vector<Finding> findings;
  Fitting fitting;
  for (const auto& [host, members] : ranks_of_host) {
    for (const Sharers& group : GroupByCpus(ranks, members)) {
      if (group.threads > static_cast<int>(group.cpus.size())) {
        findings.push_back(TooManyThreads(group, host));
        continue;
      }
      fitting.ranks.insert(fitting.ranks.end(), group.ranks.begin(),
                           group.ranks.end());
      fitting.threads += static_cast<size_t>(group.threads);
      fitting.cpus += group.cpus.size();
    }
    int threads = 0;
    double quota = 0;
    for (const int rank : members) {
      threads += ranks[rank].threads;
      quota = std::max(quota, ranks[rank].quota);
    }
    if (quota == 0 || threads <= quota) continue;
    findings.push_back(
        {.check = kName,
         .verdict = Verdict::kProblem,
         .seen = absl::StrFormat(
             "the container (cgroup) on %s grants %.3g CPUs, for %s: they are "
             "stopped in every period of 100 ms",
             host, quota, Count(threads, "thread")),
         .remedy = absl::StrCat(Remedy(members.size(), quota),
                                ", or raise the limit (docker run --cpus, "
                                "systemctl set-property ... CPUQuota=)"),
         .ranks = members});
  }
  if (!fitting.ranks.empty()) {
    findings.push_back(EnoughCpus(std::move(fitting)));
  }
  return findings;
}

absl::StatusOr<Findings> CheckOversubscription(Session& session) {
  const int rank = session.topology.rank;
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<ThreadFacts> facts,
      GatherFacts<ThreadFacts>(
          session, {.host = session.topology.host_of_rank[rank],
                    .cpus = session.allowed_cpus,
                    .threads = OpenMpThreads(
                        session.environment,
                        static_cast<int>(session.allowed_cpus.size())),
                    .quota = CgroupQuota(session.files)}));
  return rank == 0 ? JudgeThreads(facts) : Findings();
}

}  // namespace hvdlite::doctor
