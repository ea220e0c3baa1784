#include "tools/doctor/doctor.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "tools/doctor/report.h"

// In the order in which they run and are listed; each is a function in checks/,
// in the file of its name.
#define HVDLITE_CHECKS(ROW)  \
  ROW(BlasCheck)             \
  ROW(OpenMpCheck)           \
  ROW(LibTorchCheck)         \
  ROW(VariablesCheck)        \
  ROW(OversubscriptionCheck) \
  ROW(SmtCheck)              \
  ROW(NumaCheck)             \
  ROW(HugePagesCheck)        \
  ROW(FrequencyCheck)        \
  ROW(MpiCheck)              \
  ROW(SharedMemoryCheck)     \
  ROW(TransportsCheck)       \
  ROW(UcxCheck)              \
  ROW(LimitsCheck)           \
  ROW(AllocatorCheck)        \
  ROW(MemoryReturnCheck)     \
  ROW(VersionsCheck)         \
  ROW(ClocksCheck)           \
  ROW(SlowCoreCheck)         \
  ROW(BlasSpeedCheck)        \
  ROW(MemoryBandwidthCheck)  \
  ROW(LinksCheck)
#define HVDLITE_DECLARED(NAME) Check NAME();
#define HVDLITE_MADE(NAME) NAME(),

namespace hvdlite::doctor {

HVDLITE_CHECKS(HVDLITE_DECLARED)

const std::vector<Check>& AllChecks() {
  static const auto* const checks =
      new std::vector<Check>{HVDLITE_CHECKS(HVDLITE_MADE)};
  return *checks;
}

std::vector<Check> ChosenChecks(const std::vector<std::string>& names,
                                bool skip_slow) {
  std::vector<Check> chosen;
  for (const Check& check : AllChecks()) {
    const bool asked =
        names.empty() || absl::c_linear_search(names, check.name);
    if (asked && !(skip_slow && check.slow)) chosen.push_back(check);
  }
  return chosen;
}

absl::StatusOr<std::vector<Finding>> RunChecks(const std::vector<Check>& checks,
                                               Session& session) {
  std::vector<Finding> all;
  for (const Check& check : checks) {
    HVDLITE_ASSIGN_OR_RETURN(const Findings mine, check.run(session));
    HVDLITE_ASSIGN_OR_RETURN(
        const std::vector<std::string> texts,
        collective::GatherOrFail(session.communicator, FindingsToText(mine),
                                 session.topology.host_of_rank));
    std::vector<std::vector<Finding>> of_rank;
    for (const std::string& text : texts) {
      HVDLITE_ASSIGN_OR_RETURN(std::vector<Finding> findings,
                               FindingsFromText(text));
      of_rank.push_back(std::move(findings));
    }
    absl::c_move(MergeFindings(of_rank), std::back_inserter(all));
  }
  return all;
}

}  // namespace hvdlite::doctor
