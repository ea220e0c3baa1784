#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/run/spec.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeLimitSeconds = 600;

// One file that cannot be run is a SPEC.
bool IsSpec(const std::vector<std::string>& arguments) {
  return arguments.size() == 1 && fs::is_regular_file(arguments.front()) &&
         access(arguments.front().c_str(), X_OK) != 0;
}

absl::StatusOr<Spec> SpecForProgram(const std::vector<std::string>& words,
                                    const std::vector<std::string>& hosts) {
  Spec spec;
  spec.set_name(
      absl::StrCat("tune_", fs::path(words.front()).filename().string()));
  for (const std::string& word : words) spec.add_command(word);
  if (!absl::StrContains(absl::StrJoin(words, " "), "{report}")) {
    spec.add_command("--report");  // as the trainers have it
    spec.add_command("{report}");
  }
  spec.add_ranks(1);
  *spec.mutable_host() = {hosts.begin(), hosts.end()};
  spec.set_repeats(1);
  spec.set_scaling(STRONG);
  spec.set_time_limit_seconds(kTimeLimitSeconds);
  HVDLITE_RETURN_IF_ERROR(CheckSpec(spec));
  return spec;
}

absl::StatusOr<Spec> SpecOf(const Flags& flags) {
  if (!IsSpec(flags.arguments)) {
    return SpecForProgram(flags.arguments, flags.hosts);
  }
  HVDLITE_ASSIGN_OR_RETURN(Spec spec,
                           LoadSpec(flags.arguments.front(), flags.hosts));
  spec.set_name(spec.name() + "_tune");
  return spec;
}

}  // namespace

absl::StatusOr<int> TuneCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, SpecOf(flags));
  const support::MachineFacts machine = support::ThisMachine();
  const Dimensions dimensions = DimensionsOf(spec, machine);
  Tune& tune = *spec.mutable_tune();
  if (flags.candidates > 0) tune.set_candidates(flags.candidates);
  if (flags.final_repeats > 0) tune.set_final_repeats(flags.final_repeats);
  if (flags.time_limit_seconds > 0) {
    spec.set_time_limit_seconds(flags.time_limit_seconds);
  }
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
