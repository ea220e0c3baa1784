#include "tools/doctor/checks/rank_threads.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/doctor/checks/cgroup_quota.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/openmp_places.h"
#include "tools/support/cpu_list.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ThreadFacts, host, cpus, threads, quota,
                                   cores_of_thread)

absl::StatusOr<std::vector<ThreadFacts>> GatherThreads(Session& session) {
  const std::vector<int>& cpus = session.allowed_cpus;
  const int threads =
      OpenMpThreads(session.environment, static_cast<int>(cpus.size()));
  const auto core_of_cpu = [&](int cpu) {
    return CoreOfCpu(session.files, cpu);
  };
  return GatherFacts<ThreadFacts>(
      session, {.host = session.topology.host_of_rank[session.topology.rank],
                .cpus = cpus,
                .threads = threads,
                .quota = CgroupQuota(session.files),
                .cores_of_thread = CoresOfThreads(session.environment, threads,
                                                  cpus, core_of_cpu)});
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

int CoreOfCpu(const SystemFiles& files, int cpu) {
  const absl::StatusOr<std::vector<int>> siblings = base::ParseCpuList(
      files
          .Line(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                             "/topology/thread_siblings_list"))
          .value_or(""));
  return siblings.ok() && !siblings->empty() ? siblings->front() : cpu;
}

std::vector<Sharers> GroupByOverlap(
    const std::map<int, std::set<int>>& numbers_of_rank) {
  std::vector<Sharers> groups;
  for (const auto& [rank, numbers] : numbers_of_rank) {
    Sharers group = {.ranks = {rank}, .numbers = numbers};
    std::vector<Sharers> apart;
    for (Sharers& other : groups) {
      const bool overlap = std::any_of(
          numbers.begin(), numbers.end(),
          [&](int number) { return other.numbers.contains(number); });
      if (!overlap) {
        apart.push_back(std::move(other));
        continue;
      }
      group.ranks.insert(group.ranks.end(), other.ranks.begin(),
                         other.ranks.end());
      group.numbers.merge(other.numbers);
    }
    std::sort(group.ranks.begin(), group.ranks.end());
    apart.push_back(std::move(group));
    groups = std::move(apart);
  }
  return groups;
}

std::vector<Sharers> GroupByCpus(const std::vector<ThreadFacts>& facts,
                                 const std::string& host) {
  std::map<int, std::set<int>> cpus_of_rank;
  for (size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].host != host) continue;
    cpus_of_rank[static_cast<int>(rank)] = {facts[rank].cpus.begin(),
                                            facts[rank].cpus.end()};
  }
  return GroupByOverlap(cpus_of_rank);
}

std::string CoresOfTheirOwn(int threads) {
  return absl::StrCat(
      "give every rank cores of its own: hvdliterun, or mpirun --map-by "
      "slot:PE=",
      threads, " --bind-to core");
}

}  // namespace hvdlite::doctor
