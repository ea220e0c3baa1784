// SweepRunner: runs configurations, and keeps what they gave.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "support/machine.h"
#include "support/process.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/failure.h"
#include "tools/scaling_sweep/run/launch_plan.h"
#include "tools/scaling_sweep/run/results.h"

namespace hvdlite::scaling_sweep {

struct RunnerOptions {
  Spec spec;
  std::string launcher;  // hvdliterun
  support::MachineFacts machine;
  // Of this process, which its children inherit.
  base::Environment environment;
  // Before and after each run.
  std::function<support::CpuSeconds()> cpu_seconds = [] {
    return support::CpuSecondsNow();
  };
  bool retry_failed = false;  // samples of failed runs count as missing
  absl::Duration grace = absl::Seconds(10);  // between SIGTERM and SIGKILL
};

// For one thread. Runs have their files in the results' folder, below runs/.
class SweepRunner {
 public:
  // All but `options` outlive the runner; a line goes to `out` for each sample.
  SweepRunner(RunnerOptions options, ResultsFile& results,
              const support::SignalPipe& stop, std::ostream& out);

  // Makes sure that there is a sample of every run, in this order. A run that
  // fails is a sample, too. Until one has succeeded, those come first that tell
  // whether the program works: Aborted, with what it printed, if none of these
  // succeeds, or one ends well without a speed; then nothing is kept.
  // Cancelled if a stop signal has ended a run, of which then nothing is kept;
  // DeadlineExceeded in the same way if it took all the time there is; NotFound
  // if this host is to run the program, and has none.
  absl::Status RunAll(const std::vector<Configuration>& configurations,
                      const std::vector<PlannedRun>& runs);

  // Of each run from now on; before, it is the SPEC's.
  void LimitRuns(const RunLimit& limit) { limit_ = limit; }

  // What the launcher would do; nullopt if it does not know, if the hosts are
  // others than this one, or if the configuration has none. Cancelled as above;
  // FailedPrecondition if it would put the ranks on another number of hosts
  // than the configuration has nodes, as in a batch job of several.
  absl::StatusOr<std::optional<LaunchPlan>> PlanFor(
      const Configuration& configuration);

  // The signal that Cancelled was about.
  int stop_signal() const { return stop_signal_; }

 private:
  absl::Status TryProgram(const std::vector<Configuration>& configurations,
                          const std::vector<PlannedRun>& runs);
  void Tell(size_t number, size_t all, const Configuration& configuration,
            const Sample& sample);
  bool IsThere(const Configuration& configuration, int repeat) const;
  absl::StatusOr<Sample> RunOnce(const Configuration& configuration,
                                 int repeat);

  const RunnerOptions options_;
  ResultsFile& results_;
  const support::SignalPipe& stop_;
  std::ostream& out_;
  const std::map<std::string, std::string> machine_;  // as a Sample has it
  RunLimit limit_;
  int stop_signal_ = 0;
  std::map<std::string, std::optional<LaunchPlan>> plans_;  // by key
};

// The samples of a configuration, by repeat; of those that were run again the
// last.
std::vector<Sample> SamplesOf(const std::vector<Sample>& samples,
                              const std::string& configuration);

}  // namespace hvdlite::scaling_sweep
