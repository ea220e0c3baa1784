#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "support/processor.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::doctor {
namespace {

constexpr char kSmt[] = "smt";
constexpr char kBind[] = "OMP_PLACES=cores OMP_PROC_BIND=close";

bool HaveCoresOfTheirOwn(const std::vector<ThreadFacts>& ranks) {
  std::set<int> taken;
  for (const ThreadFacts& rank : ranks) {
    if (rank.cores_of_thread.empty()) return false;
    for (const std::set<int>& cores : rank.cores_of_thread) {
      if (cores.size() != 1 || !taken.insert(*cores.begin()).second) {
        return false;
      }
    }
  }
  return true;
}

// What gives each rank's threads cores of their own.
std::string Remedy(const SmtFacts& facts) {
  const bool too_many = facts.threads > facts.cores;
  const int threads =
      std::max((too_many ? facts.cores : facts.threads) / facts.ranks, 1);
  const std::string fewer =
      too_many ? absl::StrCat("OMP_NUM_THREADS=", threads, " ") : "";
  if (facts.ranks > facts.cores) {
    return absl::StrCat("start ", facts.cores,
                        facts.cores == 1 ? " rank" : " ranks",
                        " here with OMP_NUM_THREADS=1");
  }
  // Each rank for itself would begin at the first core.
  return facts.ranks == 1
             ? absl::StrCat("export ", fewer, kBind)
             : absl::StrCat(CoresOfTheirOwn(threads), "; then export ", fewer,
                            kBind, ", which hvdliterun does itself");
}

Finding JudgePlaces(const std::string& places, const std::vector<int>& cpus) {
  return {.check = kSmt,
          .verdict = Verdict::kWarning,
          .seen = absl::StrCat("OMP_PLACES=", places,
                               " names CPUs that this rank may not use (",
                               support::FormatCpuList(cpus),
                               " it may): the OpenMP runtime ignores it"),
          .remedy =
              "unset OMP_PLACES, or export OMP_PLACES=cores: those that "
              "each rank may use"};
}

}  // namespace

SmtFacts GatherSmt(const support::SystemFiles& files,
                   const std::vector<ThreadFacts>& sharers) {
  SmtFacts facts = {.ranks = static_cast<int>(sharers.size()), .threads = 0};
  std::set<int> cpus;
  for (const ThreadFacts& rank : sharers) {
    cpus.insert(rank.cpus.begin(), rank.cpus.end());
    facts.threads += rank.threads;
  }
  std::set<int> cores;
  for (const int cpu : cpus) cores.insert(CoreOfCpu(files, cpu));
  facts.cpus = static_cast<int>(cpus.size());
  facts.cores = static_cast<int>(cores.size());
  facts.one_per_core = HaveCoresOfTheirOwn(sharers);
  return facts;
}

Finding JudgeSmt(const SmtFacts& facts) {
  const std::string cpus = absl::StrCat(
      facts.cpus, facts.cpus == 1 ? " CPU" : " CPUs", " on ", facts.cores,
      facts.cores == 1 ? " core" : " cores", " for ", facts.threads,
      facts.threads == 1 ? " thread" : " threads",
      facts.ranks == 1 ? "" : absl::StrCat(" of ", facts.ranks, " ranks"));
  if (facts.cpus == facts.cores) {
    return {.check = kSmt, .seen = absl::StrCat(cpus, ": no SMT")};
  }
  if (facts.threads <= facts.cores && facts.one_per_core) {
    return {.check = kSmt,
            .seen = absl::StrCat(cpus,
                                 ": OMP_PLACES gives each thread a core of its "
                                 "own")};
  }
  if (facts.threads <= facts.cores) {
    return {.check = kSmt,
            .verdict = Verdict::kNote,
            .seen = absl::StrCat(cpus, ": threads may meet on a core"),
            .remedy = Remedy(facts)};
  }
  return {.check = kSmt,
          .verdict = Verdict::kWarning,
          .seen = absl::StrCat(cpus,
                               ": two threads of a core share its vector "
                               "units, which one can fill"),
          .remedy = Remedy(facts)};
}

namespace {

absl::StatusOr<Findings> RunSmt(Session& session) {
  const int rank = session.topology.rank;
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<ThreadFacts> facts,
                           GatherThreads(session));
  Findings findings;
  for (const Sharers& group : GroupByCpus(facts, facts[rank].host)) {
    if (std::count(group.ranks.begin(), group.ranks.end(), rank) == 0) continue;
    std::vector<ThreadFacts> sharers;
    for (const int sharer : group.ranks) sharers.push_back(facts[sharer]);
    findings.push_back(JudgeSmt(GatherSmt(session.files, sharers)));
  }
  if (PlacesAreOutside(session.environment, session.allowed_cpus)) {
    findings.push_back(
        JudgePlaces(session.environment.get("OMP_PLACES").value_or(""),
                    session.allowed_cpus));
  }
  return findings;
}

}  // namespace

Check SmtCheck() {
  return {.name = kSmt,
          .sees = "two threads on a core",
          .slow = false,
          .run = &RunSmt};
}

}  // namespace hvdlite::doctor
