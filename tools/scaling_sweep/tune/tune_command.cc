// The subcommand `tune`.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "support/output_file.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/scaling_sweep/tune/available.h"
#include "tools/scaling_sweep/tune/trials.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kTextName[] = "tuning.txt";

// Returns the last message of hvdliterun without its name.
std::string RefusalIn(const std::string& text) {
  std::string refusal;
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::ConsumePrefix(&line, "hvdliterun: ") || refusal.empty()) {
      refusal = std::string(line);
    }
  }
  return refusal;
}

// Runs configurations as a sweep does.
class SweepTrials final : public TrialRunner {
 public:
  // `results` and `stop` must outlive it.
  SweepTrials(RunnerOptions options, ResultsFile& results,
              const support::SignalPipe& stop)
      : limit_seconds_(options.spec.time_limit_seconds()),
        results_(results),
        runner_(std::move(options), results, stop, silence_) {}

  absl::StatusOr<FinishedRun> Run(const Configuration& configuration,
                                  int repeat, const RunLimit& limit) override {
    runner_.LimitRuns(limit.seconds < limit_seconds_
                          ? limit
                          : RunLimit{.seconds = limit_seconds_});
    const size_t before = results_.samples().size();
    HVDLITE_RETURN_IF_ERROR(runner_.RunAll({configuration}, {{0, repeat}}));
    const Sample* const sample = Find(configuration, repeat);
    if (sample == nullptr) return absl::InternalError("a run has no sample");
    return FinishedRun{*sample, results_.samples().size() > before};
  }

  bool Has(const Configuration& configuration, int repeat) const override {
    return Find(configuration, repeat) != nullptr;
  }

  absl::StatusOr<LaunchAnswer> Ask(
      const Configuration& configuration) override {
    LaunchAnswer answer;
    HVDLITE_ASSIGN_OR_RETURN(answer.plan, runner_.PlanFor(configuration));
    if (answer.plan || configuration.alone) return answer;
    std::stringstream text;
    text << std::ifstream(std::filesystem::path(results_.directory()) /
                          DirectoryOf(configuration) / "launch_plan.txt")
                .rdbuf();
    // The answer may also be that each node makes its own plan.
    if (!ParseLaunchPlan(text.str())) answer.refusal = RefusalIn(text.str());
    return answer;
  }

  double Seconds() const override { return support::WallSeconds(); }

  // The signal that caused Cancelled.
  int stop_signal() const { return runner_.stop_signal(); }

 private:
  // A sample that need not run again.
  const Sample* Find(const Configuration& configuration, int repeat) const {
    const std::string key = Key(configuration);
    const std::vector<Sample>& samples = results_.samples();
    const auto found =
        std::find_if(samples.rbegin(), samples.rend(), [&](const Sample& one) {
          return one.configuration == key && one.repeat == repeat;
        });
    return found == samples.rend() ? nullptr : &*found;
  }

  const double limit_seconds_;  // of the spec
  ResultsFile& results_;
  std::ostream silence_{nullptr};
  SweepRunner runner_;
};

Premises PremisesOf(const Spec& spec, const base::Environment& environment) {
  Premises premises = {.exists = support::Exists};
  const auto program = support::PathOfProgram(spec.command(0), environment);
  if (!program.ok()) return premises;
  auto libraries = support::LibrariesOf(*program);
  if (libraries.ok()) premises.libraries = *std::move(libraries);
  return premises;
}

absl::Status Search(const Spec& spec, const Dimensions& dimensions,
                    const TuneOptions& options, TrialRunner& runner,
                    const std::string& launcher, const std::string& directory,
                    std::ostream& out) {
  Tuner tuner(spec, dimensions, runner, options, out);
  const absl::Status status = tuner.Search();
  const TuningResult result = tuner.Result();
  // Also write the result if the defaults failed during the search.
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
  // The results contain the dimensions that they belong to.
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
  TuneOptions options;
  if (flags.minutes > 0) options.minutes = flags.minutes;
  absl::StatusOr<AvailableDimensions> available =
      Available(spec, dimensions, PremisesOf(spec, environment), trials);
  absl::Status status = available.status();
  if (available.ok()) {
    options.left_out = available->left_out;
    status = Search(spec, available->dimensions, options, trials,
                    flags.launcher.empty() ? "hvdliterun" : flags.launcher,
                    directory, out);
  }
  if (absl::IsCancelled(status)) {
    out << "interrupted; run the command again to continue" << std::endl;
    return 128 + trials.stop_signal();
  }
  HVDLITE_RETURN_IF_ERROR(status);
  return 0;
}

}  // namespace hvdlite::scaling_sweep
