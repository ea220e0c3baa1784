#include "tools/scaling_sweep/tune/sweep_trials.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/run/command.h"

namespace hvdlite::scaling_sweep {
namespace {

// What hvdliterun wrote last, without its name.
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

}  // namespace

SweepTrials::SweepTrials(RunnerOptions options, ResultsFile& results,
                         const support::SignalPipe& stop)
    : limit_seconds_(options.spec.time_limit_seconds()),
      results_(results),
      runner_(std::move(options), results, stop, silence_) {}

TrialRunner SweepTrials::Runner() {
  return {.run =
              [this](const Configuration& configuration, int repeat,
                     const RunLimit& limit) {
                return Run(configuration, repeat, limit);
              },
          .has =
              [this](const Configuration& configuration, int repeat) {
                return Find(configuration, repeat) != nullptr;
              },
          .ask =
              [this](const Configuration& configuration) {
                return Ask(configuration);
              },
          .clock = support::WallSeconds};
}

const Sample* SweepTrials::Find(const Configuration& configuration,
                                int repeat) const {
  const std::string key = Key(configuration);
  const std::vector<Sample>& samples = results_.samples();
  const auto found =
      std::find_if(samples.rbegin(), samples.rend(), [&](const Sample& one) {
        return one.configuration == key && one.repeat == repeat;
      });
  return found == samples.rend() ? nullptr : &*found;
}

absl::StatusOr<FinishedRun> SweepTrials::Run(const Configuration& configuration,
                                             int repeat, RunLimit limit) {
  if (limit.seconds >= limit_seconds_) limit = {.seconds = limit_seconds_};
  runner_.LimitRuns(limit);
  const size_t before = results_.samples().size();
  HVDLITE_RETURN_IF_ERROR(runner_.RunAll({configuration}, {{0, repeat}}));
  const Sample* const sample = Find(configuration, repeat);
  if (sample == nullptr) return absl::InternalError("a run left no sample");
  return FinishedRun{*sample, results_.samples().size() > before};
}

absl::StatusOr<LaunchAnswer> SweepTrials::Ask(
    const Configuration& configuration) {
  LaunchAnswer answer;
  HVDLITE_ASSIGN_OR_RETURN(answer.plan, runner_.PlanFor(configuration));
  if (answer.plan || configuration.alone) return answer;
  std::stringstream text;
  text << std::ifstream(std::filesystem::path(results_.directory()) /
                        FolderOf(configuration) / "launch_plan.txt")
              .rdbuf();
  // Nodes that plan for themselves are an answer, too.
  if (PlannedHosts(text.str()) == 0) answer.refusal = RefusalIn(text.str());
  return answer;
}

}  // namespace hvdlite::scaling_sweep
