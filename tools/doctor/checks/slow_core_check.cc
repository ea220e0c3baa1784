#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "support/machine.h"
#include "support/statistics.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/core_peak.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuFacts, host, rank, cpu, wall_seconds,
                                   cpu_seconds, steal_seconds, gflops,
                                   competitor)

namespace {

constexpr double kProbeSeconds = 0.1;
constexpr double kGoodShare = 0.9;  // of the CPU's time
constexpr double kBadShare = 0.75;
constexpr double kGoodSpeed = 0.85;  // of the median

// Computes on `cpu` for 100 ms. Returns false if the kernel does not allow it.
bool Probe(const support::SystemFiles& files, int cpu, CpuFacts& facts) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (cpu >= CPU_SETSIZE) return false;
  CPU_SET(cpu, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) return false;
  const support::ProcessTimes before = support::ReadProcessTimes(files);
  const double steal = support::ReadCpuTimes(files)[cpu].stolen;
  const double wall_start = support::WallSeconds();
  const double cpu_start = support::ThreadCpuSeconds();
  double operations = 0;
  do {
    operations += RunFewChains(50'000);
    facts.wall_seconds = support::WallSeconds() - wall_start;
  } while (facts.wall_seconds < kProbeSeconds);
  facts.cpu_seconds = support::ThreadCpuSeconds() - cpu_start;
  facts.steal_seconds = support::ReadCpuTimes(files)[cpu].stolen - steal;
  facts.gflops = 1e-9 * operations / std::max(facts.cpu_seconds, 1e-9);
  facts.cpu = cpu;
  facts.competitor =
      CompetitorOn(cpu, before, support::ReadProcessTimes(files), getpid());
  return true;
}

std::vector<CpuFacts> ProbeAll(const support::SystemFiles& files,
                               const std::vector<int>& cpus) {
  cpu_set_t former;
  const bool restore = sched_getaffinity(0, sizeof(former), &former) == 0;
  std::vector<CpuFacts> all;
  for (const int cpu : cpus) {
    CpuFacts facts;
    if (restore && Probe(files, cpu, facts)) all.push_back(std::move(facts));
  }
  if (restore) sched_setaffinity(0, sizeof(former), &former);
  return all;
}

Finding SharedCpu(const CpuFacts& cpu, double share) {
  Finding finding = {
      .verdict = share < kBadShare ? Verdict::kProblem : Verdict::kWarning,
      .seen = absl::StrFormat("CPU %d of %s: a thread that computed all the "
                              "time got %.0f %% of the CPU",
                              cpu.cpu, cpu.host, 100 * share),
      .ranks = {cpu.rank}};
  const double lost = cpu.wall_seconds - cpu.cpu_seconds;
  if (cpu.steal_seconds > 0.5 * lost) {
    absl::StrAppend(&finding.seen, "; the hypervisor took the rest");
    finding.remedy =
        "request CPUs that are not shared, or remove the host from the host "
        "list";
  } else if (!cpu.competitor.empty()) {
    absl::StrAppend(&finding.seen, "; ", cpu.competitor, " also ran there");
    const size_t pid = cpu.competitor.rfind("(pid ");
    finding.remedy = absl::StrCat(
        "look at this process: ps -fp ",
        cpu.competitor.substr(pid + 5, cpu.competitor.size() - pid - 6),
        "; end it, or keep ranks off CPU ", cpu.cpu,
        " (hvdliterun, mpirun "
        "--cpu-set)");
  } else {
    absl::StrAppend(
        &finding.seen,
        "; no visible process ran there as long: short processes or "
        "another container used it");
    finding.remedy = absl::StrCat(
        "look at the processes on this CPU, outside containers: ps -eLo "
        "psr,pcpu,pid,comm --sort=-pcpu | awk '$1==",
        cpu.cpu, "' | head");
  }
  return finding;
}

}  // namespace

std::string CompetitorOn(int cpu, const support::ProcessTimes& before,
                         const support::ProcessTimes& after, int own) {
  int64_t most[2] = {0, 0};  // last ran on `cpu`; may have had threads there
  std::string name[2];
  const auto self = after.find(own);
  for (const auto& [id, now] : after) {
    const auto then = before.find(id);
    const int64_t ticks =
        now.ticks - (then == before.end() ? 0 : then->second.ticks);
    const bool there = now.cpu == cpu;
    const bool fellow = self != after.end() && now.name == self->second.name;
    if (id == own || (!there && (now.threads == 1 || fellow))) continue;
    const int kind = there ? 0 : 1;
    if (ticks <= most[kind]) continue;
    most[kind] = ticks;
    name[kind] = absl::StrCat(now.name, " (pid ", id, ")");
  }
  return most[0] > 0 ? name[0] : name[1];
}

std::vector<int> CpusToProbe(
    int rank, absl::Span<const std::string> host_of_rank,
    const std::vector<std::vector<int>>& cpus_of_rank) {
  // Each CPU is assigned to the rank of the host that has the fewest so far.
  std::map<int, std::vector<int>> taken;
  std::map<int, std::vector<int>> users;
  for (size_t other = 0; other < host_of_rank.size(); ++other) {
    if (host_of_rank[other] != host_of_rank[rank]) continue;
    for (const int cpu : cpus_of_rank[other]) {
      users[cpu].push_back(static_cast<int>(other));
    }
  }
  for (const auto& [cpu, ranks] : users) {
    const int chosen = *std::min_element(
        ranks.begin(), ranks.end(),
        [&](int a, int b) { return taken[a].size() < taken[b].size(); });
    taken[chosen].push_back(cpu);
  }
  return taken[rank];
}

std::vector<Finding> JudgeCpus(const std::vector<CpuFacts>& cpus) {
  if (cpus.empty()) {
    return {
        {.verdict = Verdict::kNote,
         .seen =
             "the kernel does not let hvdlite_doctor bind a thread to a CPU"}};
  }
  std::vector<double> speeds;
  std::set<std::string> hosts;
  for (const CpuFacts& cpu : cpus) {
    speeds.push_back(cpu.gflops);
    hosts.insert(cpu.host);
  }
  const double median = support::Median(speeds);
  std::vector<Finding> findings;
  std::set<int> good_ranks;
  size_t good = 0;
  for (const CpuFacts& cpu : cpus) {
    const double share = cpu.cpu_seconds / cpu.wall_seconds;
    if (share < kGoodShare) {
      findings.push_back(SharedCpu(cpu, share));
    } else if (cpu.gflops < kGoodSpeed * median) {
      findings.push_back(
          {.verdict = Verdict::kWarning,
           .seen = absl::StrFormat(
               "CPU %d of %s computes at %.3g GFLOP/s; the median of all CPUs "
               "is %.3g",
               cpu.cpu, cpu.host, cpu.gflops, median),
           .remedy = "check whether the CPU is hot (grep MHz /proc/cpuinfo; "
                     "dmesg | grep -i thrott) or the other thread of its core "
                     "is busy; otherwise remove the host from the host list",
           .ranks = {cpu.rank}});
    } else {
      ++good;
      good_ranks.insert(cpu.rank);
    }
  }
  if (good > 0) {
    findings.push_back(
        {.seen = absl::StrFormat(
             "%d of %d CPUs on %d %s are free and equally fast: multiply-adds "
             "at %.3g GFLOP/s",
             good, cpus.size(), hosts.size(),
             hosts.size() == 1 ? "host" : "hosts", median),
         .ranks = {good_ranks.begin(), good_ranks.end()}});
  }
  return findings;
}

std::vector<Finding> JudgeFreeCpus(const std::vector<ThreadFacts>& ranks,
                                   const std::vector<CpuFacts>& cpus) {
  std::vector<Finding> findings;
  for (const auto& [host, groups] : GroupByCpus(ranks)) {
    for (const Sharers& group : groups) {
      const int64_t shared =
          std::count_if(cpus.begin(), cpus.end(), [&](const CpuFacts& cpu) {
            return cpu.host == host && group.numbers.contains(cpu.cpu) &&
                   cpu.cpu_seconds < kGoodShare * cpu.wall_seconds;
          });
      const int64_t free = std::ssize(group.numbers) - shared;
      const int64_t threads = ThreadsOf(ranks, group.ranks);
      const std::string spinning = SpinningOf(ranks, group.ranks);
      const bool wait =  // threads wait for others of their rank
          std::any_of(group.ranks.begin(), group.ranks.end(),
                      [&](int rank) { return ranks[rank].threads > 1; });
      if (shared == 0 || threads <= free || !wait) continue;
      const int64_t fitting = free / std::ssize(group.ranks);
      findings.push_back(
          {.verdict = Verdict::kWarning,
           .seen = absl::StrFormat(
               "%d OpenMP threads on %s, but only %d of %d CPUs %s free of "
               "other load: threads wait for the slowest one and spin %s",
               threads, host, free, group.numbers.size(),
               free == 1 ? "is" : "are",
               spinning.empty() ? "for up to 3 ms each time"
                                : absl::StrCat("for longer (", spinning, ")")),
           .remedy = absl::StrCat(
               fitting >= 1
                   ? absl::StrCat("export OMP_NUM_THREADS=", fitting, ", or ")
                   : "",
               absl::StartsWith(spinning, "GOMP_SPINCOUNT")
                   ? "unset GOMP_SPINCOUNT; "
                   : "",
               "export OMP_WAIT_POLICY=passive"),
           .ranks = group.ranks});
    }
  }
  return findings;
}

absl::StatusOr<Findings> RunSlowCore(Session& session) {
  const int rank = session.topology.rank;
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<std::vector<int>> cpus_of_rank,
      GatherFacts<std::vector<int>>(session, session.allowed_cpus));
  // Ranks sleep in this barrier, so that those without a CPU to measure use
  // none.
  HVDLITE_RETURN_IF_ERROR(session.communicator.Barrier());
  std::vector<CpuFacts> mine =
      ProbeAll(session.files,
               CpusToProbe(rank, session.topology.host_of_rank, cpus_of_rank));
  for (CpuFacts& cpu : mine) {
    cpu.host = session.topology.host_of_rank[rank];
    cpu.rank = rank;
  }
  HVDLITE_RETURN_IF_ERROR(session.communicator.Barrier());
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::vector<CpuFacts>> of_rank,
                           GatherFacts<std::vector<CpuFacts>>(session, mine));
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<ThreadFacts> threads,
                           GatherThreads(session));
  if (rank != 0) return Findings();
  std::vector<CpuFacts> all;
  for (const std::vector<CpuFacts>& cpus : of_rank) {
    all.insert(all.end(), cpus.begin(), cpus.end());
  }
  Findings findings = JudgeCpus(all);
  Findings of_threads = JudgeFreeCpus(threads, all);
  std::move(of_threads.begin(), of_threads.end(), std::back_inserter(findings));
  return findings;
}

}  // namespace hvdlite::doctor
