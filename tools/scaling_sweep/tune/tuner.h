// Tuner: finds the fastest setting of a program on this machine in a given
// time, and reports how certain that is.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "support/statistics.h"
#include "tools/scaling_sweep/tune/available.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/scaling_sweep/tune/effort.h"
#include "tools/scaling_sweep/tune/trials.h"

namespace hvdlite::scaling_sweep {

struct TuneOptions {
  double minutes = 15;
  std::vector<LeftOut> left_out = {};  // options that this machine lacks
};

struct RankedCandidate {
  std::string name = {};
  int rounds = 0;     // in the search
  int disturbed = 0;  // rounds that are still disturbed after repetitions
  // Median; nullopt: a run failed.
  std::optional<double> items_per_second = {};
  // Mean of the ratios to the defaults, over common rounds.
  std::optional<double> by_defaults = {};
};

// Ratio of the items/s of two candidates, from rounds in which both ran.
struct Reason {
  std::string name = {};              // the part: "blas=Haswell"
  support::RatioEstimate ratio = {};  // one round: without an interval
  bool failed = false;                // a run failed; there is no comparison
  bool compared = false;              // both ran
  PairedRatios paired = {};
};

struct TuningResult {
  std::vector<RankedCandidate> ranking = {};  // the best first
  // The winner of the search; nullopt: none yet, or only the defaults succeed.
  std::optional<Candidate> challenger = {};
  std::string challenger_name = {};
  // The challenger compared with hvdliterun's defaults, in the rounds of the
  // last comparison; before there are any, in those of the search.
  Reason against_launcher = {};
  Reason against_default = {};           // with LibTorch's defaults
  Reason launcher_against_default = {};  // hvdliterun's with LibTorch's
  bool finished = false;
  std::string not_compared = {};  // why there was no last comparison, or ""
  Candidate recommended = {};  // the defaults unless another is surely faster
  Configuration recommended_configuration = {};
  // The challenger compared with itself without each of its settings and
  // without each of hvdliterun's defaults.
  std::vector<Reason> settings = {};
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> untried = {};  // options without a run
  TrialCounts counts = {};
};

// Describes for people what will be tried in which order, and how long it will
// take, estimated from a measured run.
std::string PlanText(const Dimensions& dimensions, const Effort& effort,
                     double run_seconds, const TuneOptions& options);

class Tuner {
 public:
  // All arguments except the options must outlive it. It prints the plan, a
  // line for each run, and its decisions to `out`.
  Tuner(const Spec& spec, const Dimensions& dimensions, TrialRunner& runner,
        TuneOptions options, std::ostream& out);

  // Runs hvdliterun's defaults, as warm-up and to measure how much fits into
  // the time; then the worlds; then, in the fastest world, a race of settings;
  // last, new rounds of the winner and the defaults, if the winner is not
  // clearly slower and two rounds fit. A candidate is dropped when one of its
  // runs fails. While there is time, a setting is removed if the winner is
  // surely faster without it. Internal if the defaults fail twice in a row,
  // FailedPrecondition if no comparison fits into the time, Cancelled as in the
  // runner.
  absl::Status Search();

  // Returns the results so far.
  TuningResult Result() const;

 private:
  // A part of a candidate that can be removed.
  struct Part {
    std::string name;
    Candidate without;
    bool of_launcher = false;  // a default of hvdliterun
  };

  std::string Name(const Candidate& candidate) const;
  bool IsOut(const Candidate& candidate) const;
  std::optional<double> Score(const Candidate& candidate) const;
  std::vector<Candidate> Runnable(std::vector<Candidate> candidates);
  void Remember(const std::vector<Candidate>& candidates);
  void SortByScore(std::vector<Candidate>& candidates) const;

  absl::Status RunRound(const std::vector<Candidate>& round,
                        const KeptTime& kept);
  absl::Status RunDefaults();
  absl::Status FindWorld();
  absl::Status RaceSettings();
  void KeepWhatFits(std::vector<Candidate>& left, const KeptTime& kept) const;
  void KeepBetterHalf(std::vector<Candidate>& left, bool first);
  absl::StatusOr<std::vector<Part>> PartsOf(const Candidate& candidate) const;
  absl::Status CompareAtLast();
  absl::Status RunLastRounds();
  std::optional<Candidate> LessWhatHarms() const;
  Reason Judged(const Candidate& one, const Candidate& other,
                const std::string& name) const;
  bool IsSure(const Candidate& faster, const Candidate& slower) const;
  bool IsHopeless(const Candidate& candidate) const;
  bool HasLastRounds() const;
  KeptTime KeptForTheEnd(const Candidate& best) const;
  std::vector<RankedCandidate> Ranking() const;
  std::vector<std::string> Untried() const;

  const Spec& spec_;
  const Dimensions& dimensions_;
  TrialRunner& runner_;
  const TuneOptions options_;
  std::ostream& out_;
  Trials trials_;
  Effort effort_;
  const Candidate defaults_;
  const Candidate alone_;
  std::vector<Candidate> worlds_;
  SearchBase base_;
  std::vector<LeftOut> left_out_;
  std::vector<Candidate> all_;  // have been in a round
  int round_ = 0;               // the next round
  std::optional<Candidate> challenger_;
  std::optional<int> final_round_;  // the first of the last comparison
  std::vector<Part> parts_;         // are measured in it
  std::string not_compared_;
  bool finished_ = false;
};

// Returns the ranking, the recommendation and its certainty, what was left out,
// and the command. `spec` has the program; `launcher` is hvdliterun's path.
std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher);

}  // namespace hvdlite::scaling_sweep
