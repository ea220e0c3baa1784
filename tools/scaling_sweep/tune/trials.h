// Trials: runs candidates in rounds, again what other programs disturbed, and
// keeps an eye on the time.
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

// What the launcher would do.
struct LaunchAnswer {
  std::optional<LaunchPlan> plan;  // nullopt: nobody knows
  std::string refusal;  // why it would not start it; empty: it would, perhaps
};

struct FinishedRun {
  Sample sample;
  bool is_new = true;  // it was not there already
};

// Runs configurations.
class TrialRunner {
 public:
  virtual ~TrialRunner() = default;

  // Cancelled if a stop signal has ended the run, DeadlineExceeded if it took
  // all the time there is. A longer limit than the SPEC's is the SPEC's.
  virtual absl::StatusOr<FinishedRun> Run(const Configuration& configuration,
                                          int repeat,
                                          const RunLimit& limit) = 0;
  // Whether it is there already.
  virtual bool Has(const Configuration& configuration, int repeat) const = 0;
  virtual absl::StatusOr<LaunchAnswer> Ask(
      const Configuration& configuration) = 0;
  virtual double Seconds() const = 0;  // of a clock
};

struct TrialCounts {
  int runs = 0;
  int disturbed = 0;
  int repeated = 0;  // runs again of what was disturbed
  int unknown = 0;   // of which nobody knows whether they were
};

// What a round leaves for its first `first` candidates, and for what follows
// it; the others have the rest.
struct KeptTime {
  double seconds = 0;
  size_t first = 1;
};

class Trials {
 public:
  // All but numbers outlive it; a line goes to `out` for each new run.
  Trials(const Spec& spec, const Dimensions& dimensions, TrialRunner& runner,
         double budget_seconds, std::ostream& out);

  // Runs each candidate that has not failed, and that can run, once in the
  // round, every second round backwards. What does not fit into the time is
  // left out; a run that takes longer than there is time is ended, and does not
  // count. A run that was disturbed is repeated twice at most, while a fifth of
  // the time suffices for that, and until it has been seen four times to be in
  // vain. A failed run of the first candidate, which the others are compared
  // with, is repeated once. Cancelled as the runner.
  absl::Status RunRound(int round, const std::vector<Candidate>& candidates,
                        const KeptTime& kept = {});

  // The first number from `round` on of which each of them has a run, or none;
  // those that have failed aside.
  int WholeRound(int round, const std::vector<Candidate>& candidates) const;

  const Rounds& RoundsOf(const Candidate& candidate) const;
  PairedRatios Ratios(const Candidate& one, const Candidate& other,
                      int first_round = 0) const;

  // That a run takes with all that belongs to it: the candidate's mean, or that
  // of all.
  double SecondsOf(const Candidate& candidate) const;
  double SecondsOf(const std::vector<Candidate>& candidates) const;

  double seconds_left() const { return budget_ - spent_; }
  // That are still to come, for the lines of runs.
  void PlanRuns(int64_t runs) { planned_ = runs; }
  // Of each run; before, it is the time left.
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
  double spent_again_ = 0;  // on runs again
  int in_vain_ = 0;         // runs again that were disturbed, in a row
  int64_t planned_ = 0;
  std::optional<RunLimit> limit_;
};

}  // namespace hvdlite::scaling_sweep
