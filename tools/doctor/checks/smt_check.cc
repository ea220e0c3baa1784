#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "support/processor.h"
#include "support/text_table.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::doctor {
namespace {

constexpr char kBind[] = "OMP_PLACES=cores OMP_PROC_BIND=close";

// Whether OMP_PLACES and OMP_PROC_BIND give each thread its own core.
bool HaveCoresOfTheirOwn(const std::vector<ThreadFacts>& facts,
                         const std::vector<int>& ranks) {
  std::set<int> taken;
  for (const int rank : ranks) {
    if (facts[rank].cores_of_thread.empty()) return false;
    for (const std::set<int>& cores : facts[rank].cores_of_thread) {
      if (cores.size() != 1 || !taken.insert(*cores.begin()).second) {
        return false;
      }
    }
  }
  return true;
}

// The setting that gives each rank's threads their own cores.
std::string Remedy(int64_t ranks, int64_t threads, int64_t cores) {
  const bool too_many = threads > cores;
  const int64_t fitting =
      std::max<int64_t>((too_many ? cores : threads) / ranks, 1);
  const std::string fewer =
      too_many ? absl::StrCat("OMP_NUM_THREADS=", fitting, " ") : "";
  if (ranks > cores) {
    return absl::StrCat("start ", support::Counted(cores, "rank"),
                        " here with OMP_NUM_THREADS=1");
  }
  // Without cores of its own, each rank would bind from the first core on.
  return ranks == 1
             ? absl::StrCat("export ", fewer, kBind)
             : absl::StrCat(CoresOfTheirOwn(fitting), "; then export ", fewer,
                            kBind, " (hvdliterun does this itself)");
}

// Judges ranks that share CPUs; usually the group has one rank.
Finding JudgeSharers(const std::vector<ThreadFacts>& facts,
                     const Sharers& group) {
  const int64_t ranks = std::ssize(group.ranks);
  std::set<int> own_cores;
  int64_t threads = 0;
  for (const int rank : group.ranks) {
    own_cores.insert(facts[rank].cores.begin(), facts[rank].cores.end());
    threads += facts[rank].threads;
  }
  const int64_t cpus = std::ssize(group.numbers);
  const int64_t cores = std::ssize(own_cores);
  Finding finding = {
      .seen = absl::StrCat(
          support::Counted(cpus, "CPU"), " on ",
          support::Counted(cores, "core"), " for ",
          support::Counted(threads, "thread"),
          ranks == 1 ? "" : absl::StrCat(" of ", ranks, " ranks"), ": "),
      .ranks = group.ranks};
  if (cpus == cores) {
    finding.seen += "no SMT";
  } else if (threads <= cores && HaveCoresOfTheirOwn(facts, group.ranks)) {
    finding.seen += "OMP_PLACES gives each thread its own core";
  } else {
    finding.verdict = threads <= cores ? Verdict::kNote : Verdict::kWarning;
    finding.seen += threads <= cores
                        ? "two threads may run on the same core"
                        : "two threads on a core share its vector units, "
                          "and one thread alone can keep them busy";
    finding.remedy = Remedy(ranks, threads, cores);
  }
  return finding;
}

}  // namespace

std::vector<Finding> JudgeSmt(const std::vector<ThreadFacts>& ranks) {
  std::vector<Finding> findings;
  for (const auto& [host, groups] : GroupByCpus(ranks)) {
    for (const Sharers& group : groups) {
      findings.push_back(JudgeSharers(ranks, group));
    }
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].places_outside.empty()) continue;
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrCat(
             "OMP_PLACES=", ranks[rank].places_outside,
             " names only CPUs that this rank may not use (it may use ",
             support::FormatCpuList(ranks[rank].cpus),
             "): the OpenMP runtime ignores it"),
         .remedy = "unset OMP_PLACES, or export OMP_PLACES=cores (the cores "
                   "that each rank may use)",
         .ranks = {static_cast<int>(rank)}});
  }
  return findings;
}

absl::StatusOr<Findings> RunSmt(Session& session) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<ThreadFacts> facts,
                           GatherThreads(session));
  return session.topology.rank == 0 ? JudgeSmt(facts) : Findings();
}

}  // namespace hvdlite::doctor
