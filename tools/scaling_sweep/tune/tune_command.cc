#include <string>

#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/requested_spec.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {

absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, RequestedSpec(flags));
  const support::MachineFacts machine = support::ThisMachine();
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
  const std::string launcher = LauncherOf(flags);
  SweepRunner runner({.spec = spec,
                      .launcher = launcher,
                      .machine = machine,
                      .environment = base::ProcessEnvironment(),
                      .retry_failed = flags.retry_failed},
                     results, stop, out);
  out << PlanText(spec, dimensions) << std::flush;
  const absl::StatusOr<TuningResult> result =
      TuneSettings(spec, dimensions, runner, results, out);
  if (absl::IsCancelled(result.status())) {
    out << "interrupted; the same command goes on from here" << std::endl;
    return 128 + runner.stop_signal();
  }
  HVDLITE_RETURN_IF_ERROR(result.status());
  out << TuningText(*result, spec,
                    flags.launcher.empty() ? "hvdliterun" : flags.launcher);
  return 0;
}

}  // namespace hvdlite::scaling_sweep
