// Trials: runs candidates in rounds, repeats runs that other programs
// disturbed, and respects the time limit.
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/failure.h"
#include "tools/scaling_sweep/run/launch_plan.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/scaling_sweep/tune/race.h"

namespace hvdlite::scaling_sweep {

// The launcher's answer about a run.
struct LaunchAnswer {
  std::optional<LaunchPlan> plan;  // nullopt: not known
  std::string refusal;  // why it would not start the run; empty: no objection
};

struct FinishedRun {
  Sample sample;
  bool is_new = true;  // false: its result was there already
};

// Runs configurations.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;

  // Cancelled if a stop signal has ended the run, DeadlineExceeded if it took
  // all the time that is left. The limit of the spec also applies.
  virtual absl::StatusOr<FinishedRun> Run(const Configuration& configuration,
                                          int repeat,
                                          const RunLimit& limit) = 0;
  // Whether the result is there already.
  virtual bool Has(const Configuration& configuration, int repeat) const = 0;
  virtual absl::StatusOr<LaunchAnswer> Ask(
      const Configuration& configuration) = 0;
  virtual double Seconds() const = 0;  // reads a clock
};

struct TrialCounts {
  int runs = 0;
  int disturbed = 0;
  int repeated = 0;  // repetitions of disturbed runs
  int unknown = 0;   // runs that may have been disturbed or not
};

// Time that a round reserves for its first `first` candidates and for later
// rounds. The other candidates may use the rest.
struct KeptTime {
  double seconds = 0;
  size_t first = 1;
};

class Trials {
 public:
  // All objects must outlive it. It prints a line for each new run to `out`.
  Trials(const Spec& spec, const Dimensions& dimensions, TrialRunner& runner,
         double budget_seconds, std::ostream& out);

  // Runs each candidate that can run and has not failed once in the round;
  // every second round runs backwards. Candidates that do not fit into the time
  // are left out. A run that takes all the time that is left is ended and does
  // not count. A disturbed run is repeated at most twice. Repetitions may use a
  // fifth of the time, and they stop after four that were disturbed, too. A
  // failed run of the first candidate (the others are compared with it) is
  // repeated once. Cancelled as in the runner.
  absl::Status RunRound(int round, const std::vector<Candidate>& candidates,
                        const KeptTime& kept = {});

  // Returns the first round from `round` on in which either all candidates have
  // a run or none has. Failed candidates are ignored.
  int WholeRound(int round, const std::vector<Candidate>& candidates) const;

  const Rounds& RoundsOf(const Candidate& candidate) const;
  PairedRatios Ratios(const Candidate& one, const Candidate& other,
                      int first_round = 0) const;

  // Returns the time of a run with all its overhead: the mean of the candidate,
  // or that of all candidates.
  double SecondsOf(const Candidate& candidate) const;
  double SecondsOf(const std::vector<Candidate>& candidates) const;

  double seconds_left() const { return budget_ - spent_; }
  // Sets the number of runs to come, which the lines of runs show.
  void PlanRuns(int64_t runs) { planned_ = runs; }
  // Sets the limit of each run; before, it is the time left.
  void LimitRuns(const RunLimit& limit) { limit_ = limit; }
  const TrialCounts& counts() const { return counts_; }

 private:
  struct Costs {
    double seconds = 0;
    int runs = 0;
    double mean() const { return seconds / runs; }
  };

  absl::Status RunOne(int round, const Candidate& candidate, double seconds,
                      bool again_if_failed);
  absl::StatusOr<FinishedRun> Attempt(const Configuration& configuration,
                                      int repeat, const std::string& name,
                                      double seconds);
  bool MayRepeat(double seconds) const;
  void Spend(const std::string& name, double seconds);
  void TellNumber() const;
  void Tell(const FinishedRun& run, const std::string& name) const;

  const Spec& spec_;
  const Dimensions& dimensions_;
  TrialRunner& runner_;
  const double budget_;
  std::ostream& out_;
  std::map<std::string, Rounds> rounds_;  // by the candidate's name
  std::map<std::string, Costs> costs_;
  Costs all_costs_;
  TrialCounts counts_;
  double spent_ = 0;
  double spent_again_ = 0;  // seconds spent on repetitions
  int in_vain_ = 0;         // consecutive repetitions that were disturbed
  int64_t planned_ = 0;
  std::optional<RunLimit> limit_;
};

}  // namespace hvdlite::scaling_sweep
