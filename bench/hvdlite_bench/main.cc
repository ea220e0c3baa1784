// hvdlite_bench: compares the speed of hvdlite and MPI in interleaved rounds.
// Run it under mpirun; `hvdlite_bench --help` lists its modes.

#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include "base/environment.h"
#include "base/launcher_environment.h"
#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/results.h"
#include "support/command_line.h"
#include "support/flags.h"
#include "support/input_error.h"
#include "support/interrupt_notice.h"
#include "support/output_file.h"

namespace hvdlite::tools {
namespace {

// Prints the exception and ends all ranks, which would wait for this one. It is
// the terminate handler, so that no destructor runs before: many destructors
// are collective.
[[noreturn]] void EndAllRanks() {
  try {
    if (std::current_exception())
      std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    std::cerr << "hvdlite_bench: " << error.what() << std::endl;
  } catch (...) {
  }
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized != 0 && finalized == 0) MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

int Main(int argc, char** argv) {
  support::TellIfInterrupted(
      "hvdlite_bench",
      "no file is written; the same command starts from scratch; fewer "
      "--rounds take less time");
  CLI::App app(
      "Compares the speed of hvdlite and MPI in interleaved rounds. Run it "
      "under mpirun with one rank per core.",
      "hvdlite_bench");
  support::AddVersion(app);
  Run run;
  std::string commit;
  support::AddPositive(app, "--rounds", run.rounds,
                       "Number of measured rounds");
  support::AddNotNegative(app, "--warmup", run.warmup,
                          "Number of warm-up rounds, which are not measured");
  app.add_flag("--details", run.details,
               "Print all implementations of all cases, not only one row "
               "each");
  app.add_option("--json", run.json,
                 "JSON file for the results and all samples");
  bool overwrite = false;  // modes read it from the parser
  support::AddOverwrite(app, overwrite);
  app.add_option("--commit", commit,
                 "Version of the source; default: the output of git describe");
  app.fallthrough();
  app.require_subcommand(1);

  std::vector<Mode> modes = {SweepMode(), TuneTableMode(), ProbeMode(),
                             WorkloadsMode()};
  for (Mode& mode : TorchModes()) modes.push_back(std::move(mode));
  std::function<int(const Run&)> chosen;
  for (const Mode& mode : modes) {
    CLI::App* command = app.add_subcommand(mode.name, mode.description);
    command->callback([&, execute = mode.add(*command), name = mode.name] {
      chosen = execute;
      run.mode = name;
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  }

  const base::Environment environment = base::ProcessEnvironment();
  // The first rank ends before MPI starts, and its launcher ends the others.
  if (base::IsFirstOfLauncher(environment)) {
    const absl::Status status =
        support::CheckOutputs({{"--json", run.json}}, overwrite);
    if (!status.ok()) {
      std::cerr << "hvdlite_bench: " << status.message() << std::endl;
      return support::kInputErrorExitCode;
    }
  }
  run.machine = DescribeMachine(environment, commit);
  run.argc = &argc;
  run.argv = &argv;
  return chosen(run);
}

}  // namespace
}  // namespace hvdlite::tools

int main(int argc, char** argv) {
  std::set_terminate(&hvdlite::tools::EndAllRanks);
  return hvdlite::tools::Main(argc, argv);
}
