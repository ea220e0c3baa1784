// SweepTrials: a TrialRunner that runs what a sweep would.
#pragma once

#include <ostream>

#include "support/process.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/scaling_sweep/tune/trials.h"

namespace hvdlite::scaling_sweep {

class SweepTrials {
 public:
  // `results` and `stop` outlive it.
  SweepTrials(RunnerOptions options, ResultsFile& results,
              const support::SignalPipe& stop);

  // For as long as this lives.
  TrialRunner Runner();

  // The signal that Cancelled was about.
  int stop_signal() const { return runner_.stop_signal(); }

 private:
  absl::StatusOr<FinishedRun> Run(const Configuration& configuration,
                                  int repeat, RunLimit limit);
  absl::StatusOr<LaunchAnswer> Ask(const Configuration& configuration);
  // A sample that may stay.
  const Sample* Find(const Configuration& configuration, int repeat) const;

  const double limit_seconds_;  // the SPEC's
  ResultsFile& results_;
  std::ostream silence_{nullptr};
  SweepRunner runner_;
};

}  // namespace hvdlite::scaling_sweep
