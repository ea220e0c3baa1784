#include <filesystem>
#include <string>

#include "base/environment.h"
#include "base/status_macros.h"
#include "support/output_file.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/requested_spec.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/scaling_sweep/tune/available.h"
#include "tools/scaling_sweep/tune/sweep_trials.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kTextName[] = "tuning.txt";

Premises PremisesOf(const Spec& spec, const base::Environment& environment) {
  Premises premises = {.exists = support::Exists};
  const auto program = support::PathOfProgram(spec.command(0), environment);
  if (!program.ok()) return premises;
  auto libraries = support::LibrariesOf(*program);
  if (libraries.ok()) premises.libraries = *std::move(libraries);
  return premises;
}

absl::Status Search(const Spec& spec, const Dimensions& dimensions,
                    const TuneOptions& options, const TrialRunner& runner,
                    const std::string& launcher, const std::string& directory,
                    std::ostream& out) {
  Tuner tuner(spec, dimensions, runner, options, out);
  const absl::Status status = tuner.Search();
  const TuningResult result = tuner.Result();
  // Also what was found before the defaults failed.
  const bool is_partial =
      absl::IsCancelled(status) ||
      (absl::IsInternal(status) && result.ranking.size() > 1);
  if (!status.ok() && !is_partial) return status;
  const std::string text = TuningText(result, spec, launcher);
  const std::string file =
      (std::filesystem::path(directory) / kTextName).string();
  out << text << "\n" << file << std::endl;
  HVDLITE_RETURN_IF_ERROR(support::WriteNewFile(file, text));
  return status;
}

}  // namespace

absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, RequestedSpec(flags));
  const support::MachineFacts machine = support::ThisMachine();
  const base::Environment environment = base::ProcessEnvironment();
  const Dimensions dimensions = DimensionsOf(spec, machine);
  Tune& tune = *spec.mutable_tune();
  if (flags.candidates > 0) tune.set_candidates(flags.candidates);
  if (flags.final_repeats > 0) tune.set_final_repeats(flags.final_repeats);
  // With the results stands what they are about.
  tune.clear_dimension();
  for (const Dimension& dimension : dimensions) {
    *tune.add_dimension() = dimension;
  }
  spec.set_traces(NONE);
  spec.clear_setting();

  const std::string directory =
      flags.output.empty() ? spec.name() + ".sweep" : flags.output;
  HVDLITE_ASSIGN_OR_RETURN(ResultsFile results,
                           ResultsFile::Open(directory, spec));
  const support::SignalPipe stop;
  SweepTrials trials({.spec = spec,
                      .launcher = LauncherOf(flags),
                      .machine = machine,
                      .environment = environment,
                      .retry_failed = flags.retry_failed},
                     results, stop);
  const TrialRunner runner = trials.Runner();
  TuneOptions options;
  if (flags.minutes > 0) options.minutes = flags.minutes;
  absl::StatusOr<AvailableDimensions> available =
      Available(spec, dimensions, PremisesOf(spec, environment), runner.ask);
  absl::Status status = available.status();
  if (available.ok()) {
    options.left_out = available->left_out;
    status = Search(spec, available->dimensions, options, runner,
                    flags.launcher.empty() ? "hvdliterun" : flags.launcher,
                    directory, out);
  }
  if (absl::IsCancelled(status)) {
    out << "interrupted; the same command goes on from here" << std::endl;
    return 128 + trials.stop_signal();
  }
  HVDLITE_RETURN_IF_ERROR(status);
  return 0;
}

}  // namespace hvdlite::scaling_sweep
