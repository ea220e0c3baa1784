// SweepRunner: runs configurations and keeps their results.
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
  // The environment of this process, which its children inherit.
  base::Environment environment;
  // Called before and after each run.
  std::function<support::CpuSeconds()> cpu_seconds = [] {
    return support::CpuSecondsNow();
  };
  bool retry_failed = false;  // samples of failed runs count as missing
  absl::Duration grace = absl::Seconds(10);  // between SIGTERM and SIGKILL
};

// Used by one thread. The files of the runs are in the directory of the
// results, below runs/.
class SweepRunner {
 public:
  // All arguments except `options` must outlive the runner. It prints a line
  // for each sample to `out`.
  SweepRunner(RunnerOptions options, ResultsFile& results,
              const support::SignalPipe& stop, std::ostream& out);

  // Makes every run that has no sample yet, in this order. A failed run is also
  // a sample. If no run has succeeded yet, runs that show whether the program
  // works come first: Aborted, with the program's output, if none of them
  // succeeds or one reports no speed; then nothing is kept. Cancelled if a stop
  // signal ended a run; DeadlineExceeded if a run took all the time that is
  // left; both do not keep that run. NotFound if the program should run on this
  // host but does not exist.
  absl::Status RunAll(const std::vector<Configuration>& configurations,
                      const std::vector<PlannedRun>& runs);

  // Sets the limit of each run from now on; before, it is that of the spec.
  void LimitRuns(const RunLimit& limit) { limit_ = limit; }

  // Returns the launcher's plan; nullopt if it has none, if other hosts than
  // this one are used, or if the configuration has no launcher. Cancelled as
  // above; FailedPrecondition if the number of hosts with ranks would differ
  // from the configuration's nodes, which happens in batch jobs.
  absl::StatusOr<std::optional<LaunchPlan>> PlanFor(
      const Configuration& configuration);

  // The signal that caused Cancelled.
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
  const std::map<std::string, std::string> machine_;  // as in Sample::machine
  RunLimit limit_;
  int stop_signal_ = 0;
  std::map<std::string, std::optional<LaunchPlan>> plans_;  // by key
};

// Returns the samples of a configuration by repeat: the last one of each.
std::vector<Sample> SamplesOf(const std::vector<Sample>& samples,
                              const std::string& configuration);

}  // namespace hvdlite::scaling_sweep
