// hvdlite_doctor: finds problems that make training slow on this machine, and
// prints how to fix them.

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"
#include "support/input_error.h"
#include "support/interrupt_notice.h"
#include "support/machine.h"
#include "support/output_file.h"
#include "support/process.h"
#include "support/processor.h"
#include "tools/doctor/command_line.h"
#include "tools/doctor/doctor.h"
#include "tools/doctor/report.h"
#include "tools/doctor/watch.h"
#include "tools/doctor/world.h"

namespace hvdlite::doctor {
namespace {

// Runs the checks and prints the findings. Returns the exit code.
absl::StatusOr<int> Examine(const Flags& flags,
                            const base::Environment& environment,
                            std::vector<int> allowed_cpus) {
  std::vector<support::Library> of_program;
  if (!flags.program.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(
        const std::string path,
        support::PathOfProgram(flags.program, environment,
                               absl::StrContains(flags.program, "/")
                                   ? support::Exists
                                   : support::IsExecutable));
    HVDLITE_ASSIGN_OR_RETURN(of_program, support::LibrariesOf(path));
  }
  const std::vector<std::string> candidates = BlasCandidates(of_program);
  const std::string own_core =
      environment.get("OPENBLAS_CORETYPE").value_or("").empty()
          ? ""
          : support::OwnOpenBlasCore(candidates);
  LoadedBlas blas = LoadBlas(candidates);
  blas.facts.own_core = own_core;
  std::unique_ptr<InspectedRanks> world = StartAlone();
  if (!flags.no_mpi) {
    HVDLITE_ASSIGN_OR_RETURN(world, StartWithMpi());
  }
  Session session = {.communicator = *world->communicator,
                     .topology = world->topology,
                     .environment = environment,
                     .files = support::SystemFiles(),
                     .allowed_cpus = std::move(allowed_cpus),
                     .program = flags.program,
                     .libraries = flags.program.empty()
                                      ? support::LoadedLibraries()
                                      : of_program,
                     .blas = std::move(blas),
                     .mpi = world->mpi};
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<Finding> findings,
      RunChecks(ChosenChecks(flags.checks, flags.skip_slow), session));
  // One rank with a bad exit code is enough: the launcher reports each of them.
  if (!world->speaks) return 0;
  const std::vector<std::string>& hosts = world->topology.host_of_rank;
  const bool json_only = flags.json == "-";
  std::cout << (json_only ? FindingsJson(findings, hosts)
                          : FindingsTable(findings, hosts))
            << std::flush;
  if (!flags.json.empty() && !json_only) {
    HVDLITE_RETURN_IF_ERROR(
        support::WriteNewFile(flags.json, FindingsJson(findings, hosts)));
  }
  const int code = ExitCodeOf(findings);
  // The launcher prints a long error about this exit code.
  if (code != 0) {
    std::cerr << "hvdlite_doctor: exit code " << code
              << " because of the warnings and problems above" << std::endl;
  }
  return code;
}

int Main(int argc, char** argv) {
  support::TellIfInterrupted(
      "hvdlite_doctor",
      "no results are printed; run the same command again, or shorten "
      "it with --check or --skip-slow");
  // This must run before a library binds this thread.
  std::vector<int> allowed_cpus = support::AllowedCpus();
  const base::Environment environment = base::ProcessEnvironment();
  // MPI is not initialized yet, so the launcher's variables give the rank.
  const bool is_first = base::IsFirstOfLauncher(environment);
  const support::CommandLine<Flags> parsed = ParseFlags(argc, argv);
  if (!parsed.flags.has_value()) {
    return is_first ? parsed.end.Tell() : parsed.end.exit_code;
  }
  const Flags& flags = *parsed.flags;
  if (flags.watch_seconds > 0) {
    std::cout << WatchCores(support::SystemFiles(),
                            absl::Seconds(flags.watch_seconds),
                            base::SteadyClock(), absl::SleepFor)
              << std::flush;
    return 0;
  }
  // If the file cannot be written, the first rank exits before MPI starts, and
  // the launcher ends the other ranks.
  if (is_first) {
    const absl::Status status =
        support::CheckOutputs({{"--json", flags.json}}, flags.overwrite);
    if (!status.ok()) {
      std::cerr << "hvdlite_doctor: " << status.message() << std::endl;
      return support::kInputErrorExitCode;
    }
  }
  const absl::StatusOr<int> code =
      Examine(flags, environment, std::move(allowed_cpus));
  if (code.ok()) return *code;
  std::cerr << "hvdlite_doctor: " << code.status().message() << std::endl;
  // A missing program counts as a wrong flag.
  return absl::IsNotFound(code.status()) ||
                 absl::IsInvalidArgument(code.status())
             ? 2
             : 1;
}

}  // namespace
}  // namespace hvdlite::doctor

int main(int argc, char** argv) { return hvdlite::doctor::Main(argc, argv); }
