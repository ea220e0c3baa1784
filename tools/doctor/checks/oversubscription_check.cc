#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "support/processor.h"
#include "support/text_table.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::doctor {
namespace {

// The setting with which the threads fit the CPUs.
std::string Remedy(size_t ranks, double cpus) {
  const int threads = static_cast<int>(cpus) / static_cast<int>(ranks);
  if (threads >= 1) return absl::StrCat("export OMP_NUM_THREADS=", threads);
  return absl::StrCat(
      "start ",
      support::Counted(static_cast<size_t>(std::max(cpus, 1.0)), "rank"),
      " here with OMP_NUM_THREADS=1");
}

// The finding for ranks with more threads than CPUs.
Finding TooManyThreads(const Sharers& group, int64_t threads,
                       const std::string& host) {
  const bool several = group.ranks.size() > 1;
  return {
      .verdict = Verdict::kProblem,
      .seen = absl::StrCat(
          support::Counted(group.ranks.size(), "rank"), " on ", host, " with ",
          support::Counted(threads, "thread"), several ? " in all" : "", " on ",
          support::Counted(group.numbers.size(), "CPU"), " (",
          support::FormatCpuList({group.numbers.begin(), group.numbers.end()}),
          "): the threads compete for the CPUs"),
      .remedy = absl::StrCat(
          Remedy(group.ranks.size(), static_cast<double>(group.numbers.size())),
          several ? ", or give every rank its own CPUs: hvdliterun "
                    "--map core, mpirun --bind-to core"
                  : ", or let the rank use more CPUs: mpirun --bind-to "
                    "none"),
      .ranks = group.ranks};
}

// The finding for ranks that bind threads to the same cores, although they have
// enough CPUs.
Finding BoundToTheSameCores(const std::vector<ThreadFacts>& facts,
                            const Sharers& group, const std::string& host) {
  int most = 1;
  for (const int rank : group.ranks) most = std::max(most, facts[rank].threads);
  return {
      .verdict = Verdict::kWarning,
      .seen = absl::StrCat(
          support::Counted(group.ranks.size(), "rank"), " on ", host, " bind ",
          support::Counted(ThreadsOf(facts, group.ranks), "thread"),
          " in all to the same ",
          group.numbers.size() == 1
              ? "core"
              : support::Counted(group.numbers.size(), "core"),
          ": these ranks may use the same CPUs, and OMP_PLACES and "
          "OMP_PROC_BIND start at the first one in each rank"),
      .remedy = absl::StrCat(CoresOfTheirOwn(most),
                             "; or export OMP_PROC_BIND=false"),
      .ranks = group.ranks};
}

// The finding for ranks whose threads spin and leave no CPU free.
std::optional<Finding> SpinOnAllCpus(const std::vector<ThreadFacts>& facts,
                                     const Sharers& group, int64_t threads,
                                     const std::string& host) {
  const std::string setting = SpinningOf(facts, group.ranks);
  const int64_t cpus = std::ssize(group.numbers);
  if (setting.empty() || threads < cpus) return std::nullopt;
  const int64_t fewer = (cpus - 1) / std::ssize(group.ranks);
  return Finding{
      .verdict = Verdict::kWarning,
      .seen = absl::StrCat(
          "waiting threads spin (", setting, "), and ",
          support::Counted(threads, "thread"), " on ", host, " leave none of ",
          support::Counted(group.numbers.size(), "CPU"),
          " free: hvdlite's background thread and other processes have to "
          "wait for a CPU"),
      .remedy = absl::StrCat(
          "unset ", setting.substr(0, setting.find('=')),
          fewer >= 1 ? absl::StrCat(", or export OMP_NUM_THREADS=", fewer)
                     : ""),
      .ranks = group.ranks};
}

// Groups of `ranks` that bind threads to the same cores and have more threads
// than cores.
std::vector<Sharers> SharersOfCores(const std::vector<ThreadFacts>& facts,
                                    const std::vector<int>& ranks) {
  std::map<int, std::set<int>> cores_of_rank;
  for (const int rank : ranks) {
    for (const std::set<int>& cores : facts[rank].cores_of_thread) {
      cores_of_rank[rank].insert(cores.begin(), cores.end());
    }
  }
  std::vector<Sharers> groups = GroupByOverlap(cores_of_rank);
  std::erase_if(groups, [&](const Sharers& group) {
    return group.ranks.size() == 1 ||
           ThreadsOf(facts, group.ranks) <= std::ssize(group.numbers);
  });
  return groups;
}

// The ranks that have enough CPUs.
struct Fitting {
  std::vector<int> ranks;
  size_t threads = 0;
  size_t cpus = 0;
};

Finding EnoughCpus(Fitting fitting) {
  std::sort(fitting.ranks.begin(), fitting.ranks.end());
  return {.seen = absl::StrCat(support::Counted(fitting.ranks.size(), "rank"),
                               " with ",
                               support::Counted(fitting.threads, "thread"),
                               fitting.ranks.size() > 1 ? " in all" : "",
                               " on ", support::Counted(fitting.cpus, "CPU")),
          .ranks = std::move(fitting.ranks)};
}

}  // namespace

std::vector<Finding> JudgeThreads(const std::vector<ThreadFacts>& ranks) {
  std::vector<Finding> findings;
  Fitting fitting;
  for (const auto& [host, groups] : GroupByCpus(ranks)) {
    std::vector<int> members;
    double quota = 0;
    for (const Sharers& group : groups) {
      for (const int rank : group.ranks) {
        members.push_back(rank);
        quota = std::max(quota, ranks[rank].quota);
      }
      const int64_t threads = ThreadsOf(ranks, group.ranks);
      std::optional<Finding> spin = SpinOnAllCpus(ranks, group, threads, host);
      const bool spins = spin.has_value();
      if (spins) findings.push_back(*std::move(spin));
      if (threads > std::ssize(group.numbers)) {
        findings.push_back(TooManyThreads(group, threads, host));
        continue;
      }
      const std::vector<Sharers> crowded = SharersOfCores(ranks, group.ranks);
      for (const Sharers& sharers : crowded) {
        findings.push_back(BoundToTheSameCores(ranks, sharers, host));
      }
      if (spins || !crowded.empty()) continue;
      fitting.ranks.insert(fitting.ranks.end(), group.ranks.begin(),
                           group.ranks.end());
      fitting.threads += static_cast<size_t>(threads);
      fitting.cpus += group.numbers.size();
    }
    std::sort(members.begin(), members.end());
    const int64_t threads = ThreadsOf(ranks, members);
    if (quota == 0 || static_cast<double>(threads) <= quota) continue;
    findings.push_back(
        {.verdict = Verdict::kProblem,
         .seen = absl::StrFormat(
             "the container (cgroup) on %s is limited to %.3g CPUs but has %s: "
             "the kernel stops them in every period of 100 ms",
             host, quota, support::Counted(threads, "thread")),
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

absl::StatusOr<Findings> RunOversubscription(Session& session) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<ThreadFacts> facts,
                           GatherThreads(session));
  return session.topology.rank == 0 ? JudgeThreads(facts) : Findings();
}

}  // namespace hvdlite::doctor
