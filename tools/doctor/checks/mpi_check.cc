#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "negotiation/world/start_agreement.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {
constexpr char kCrayRemedy[] = "export MPICH_MAX_THREAD_SAFETY=multiple";

bool IsCrays(const MpiFacts& mpi) {
  return absl::StrContains(absl::AsciiStrToLower(mpi.library), "cray mpich");
}

// A variable limits the thread level of Cray's MPI. If it is not set, the level
// is lower than possible: enough for hvdlite, but too low for a program that
// calls MPI from several threads.
bool IsHeldBack(const MpiFacts& mpi,
                const std::optional<std::string>& max_thread_safety) {
  return IsCrays(mpi) && !max_thread_safety.has_value() &&
         mpi.thread_level != "MPI_THREAD_MULTIPLE";
}
}  // namespace

std::vector<Finding> JudgeMpi(
    const std::optional<MpiFacts>& mpi, int ranks, const absl::Status& launcher,
    const absl::Status& settings,
    const std::optional<std::string>& max_thread_safety) {
  std::vector<Finding> findings;
  if (!mpi.has_value()) {
    findings.push_back(
        {.verdict = Verdict::kNote,
         .seen = "MPI is not used: only this process is checked"});
  } else if (!mpi->error.empty()) {
    findings.push_back({.verdict = Verdict::kProblem,
                        .seen = absl::StrCat(mpi->library, ": ", mpi->error),
                        .remedy = IsCrays(*mpi)
                                      ? kCrayRemedy
                                      : "use an MPI with thread support (Open "
                                        "MPI: ompi_info | grep 'Thread "
                                        "support')"});
  } else {
    findings.push_back(
        {.seen = absl::StrCat(mpi->library, ", up to ", mpi->thread_level, ", ",
                              ranks, ranks == 1 ? " rank" : " ranks")});
    if (IsHeldBack(*mpi, max_thread_safety)) {
      findings.push_back(
          {.verdict = Verdict::kNote,
           .seen = "MPICH_MAX_THREAD_SAFETY is not set: hvdlite works, but a "
                   "program that calls MPI from several threads fails",
           .remedy = kCrayRemedy});
    }
  }
  if (!launcher.ok()) {
    findings.push_back({.verdict = Verdict::kProblem,
                        .seen = std::string(launcher.message()),
                        .remedy =
                            "start the program with the mpirun of this MPI, "
                            "or with srun --mpi=pmix"});
  }
  if (!settings.ok()) {
    findings.push_back({.verdict = Verdict::kProblem,
                        .seen = std::string(settings.message()),
                        .remedy =
                            "pass each variable to all ranks (mpirun -x NAME), "
                            "or use hvdliterun, which passes all HVDLITE_*"});
  }
  return findings;
}

absl::StatusOr<Findings> RunMpi(Session& session) {
  // The check variables reports a bad configuration.
  const absl::StatusOr<Config> config = LoadConfig(session.environment);
  const absl::Status settings = internal::AgreeOnConfig(
      session.communicator, config.ok() ? *config : Config());
  if (!settings.ok() && !absl::IsInvalidArgument(settings)) return settings;
  return JudgeMpi(
      session.mpi, session.topology.size,
      session.mpi.has_value()
          ? internal::CheckLauncher(session.environment, session.topology.size)
          : absl::OkStatus(),
      settings, session.environment.get("MPICH_MAX_THREAD_SAFETY"));
}

}  // namespace hvdlite::doctor
