#include <set>

#include "absl/strings/str_cat.h"
#include "tools/doctor/check.h"
#include "tools/doctor/host_checks.h"
#include "tools/doctor/openmp_places.h"
#include "tools/doctor/oversubscription_check.h"

namespace hvdlite::doctor {
namespace {
constexpr char kName[] = "smt";
}  // namespace

SmtFacts GatherSmt(const SystemFiles& files, const std::vector<int>& cpus,
                   const base::Environment& environment) {
  // The threads of a core have the same list.
  const auto core_of_cpu = [&](int cpu) {
    return files
        .Line(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                           "/topology/thread_siblings_list"))
        .value_or(absl::StrCat(cpu));
  };
  std::set<std::string> cores;
  for (const int cpu : cpus) cores.insert(core_of_cpu(cpu));
  SmtFacts facts = {
      .cpus = static_cast<int>(cpus.size()),
      .cores = static_cast<int>(cores.size()),
      .threads = OpenMpThreads(environment, static_cast<int>(cpus.size()))};
  facts.one_per_core =
      BindsOneThreadPerCore(environment, facts.threads, core_of_cpu);
  return facts;
}

Finding JudgeSmt(const SmtFacts& facts) {
  const std::string cpus =
      absl::StrCat(facts.cpus, facts.cpus == 1 ? " CPU" : " CPUs", " on ",
                   facts.cores, facts.cores == 1 ? " core" : " cores", " for ",
                   facts.threads, facts.threads == 1 ? " thread" : " threads");
  if (facts.cpus == facts.cores) {
    return {.check = kName, .seen = absl::StrCat(cpus, ": no SMT")};
  }
  if (facts.threads <= facts.cores && facts.one_per_core) {
    return {.check = kName,
            .seen = absl::StrCat(cpus,
                                 ": OMP_PLACES gives each thread a core of its "
                                 "own")};
  }
  if (facts.threads <= facts.cores) {
    return {.check = kName,
            .verdict = Verdict::kNote,
            .seen = absl::StrCat(cpus, ": threads may meet on a core"),
            .remedy = "export OMP_PLACES=cores OMP_PROC_BIND=close"};
  }
  return {.check = kName,
          .verdict = Verdict::kWarning,
          .seen = absl::StrCat(cpus,
                               ": two threads of a core share its vector "
                               "units, which one can fill"),
          .remedy = absl::StrCat("export OMP_NUM_THREADS=", facts.cores,
                                 " OMP_PLACES=cores OMP_PROC_BIND=close")};
}

absl::StatusOr<Findings> CheckSmt(Session& session) {
  return Findings{JudgeSmt(
      GatherSmt(session.files, session.allowed_cpus, session.environment))};
}

}  // namespace hvdlite::doctor
