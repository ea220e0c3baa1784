// Tuner: finds the fastest setting of a program on this machine, in the time
// that it has, and tells how sure that is.
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
  std::vector<LeftOut> left_out = {};  // that this machine has not
};

struct RankedCandidate {
  std::string name = {};
  int rounds = 0;     // of the search
  int disturbed = 0;  // of these, at last
  // Median; nullopt: a run failed.
  std::optional<double> items_per_second = {};
  // Mean of the ratios of common rounds.
  std::optional<double> by_defaults = {};
};

// Items/s of one thing by another's, of rounds in which both ran.
struct Reason {
  std::string name = {};              // what is judged: "blas=Haswell"
  support::RatioEstimate ratio = {};  // no interval: of one round
  bool failed = false;                // a run of either; nothing is compared
  bool compared = false;              // both ran; if not, nor failed: not yet
  PairedRatios paired = {};
};

struct TuningResult {
  std::vector<RankedCandidate> ranking = {};  // the best first
  // That the search has found; nullopt: none yet, or all but the defaults fail.
  std::optional<Candidate> challenger = {};
  std::string challenger_name = {};
  // By hvdliterun's defaults, in rounds of their own; until there is one, in
  // those by which it was chosen.
  Reason against_launcher = {};
  Reason against_default = {};           // by LibTorch's
  Reason launcher_against_default = {};  // hvdliterun's defaults by LibTorch's
  bool finished = false;
  std::string not_compared = {};  // why there was no last comparison, or ""
  Candidate recommended = {};  // the defaults unless something is surely faster
  Configuration recommended_configuration = {};
  // Of the challenger less each of its settings, and less what hvdliterun does
  // for it by itself.
  std::vector<Reason> settings = {};
  std::vector<LeftOut> left_out = {};
  std::vector<std::string> untried = {};  // options of no run
  TrialCounts counts = {};
};

// What will be tried in which order, and how long it takes by a run that has
// been measured; for people.
std::string PlanText(const Dimensions& dimensions, const Effort& effort,
                     double run_seconds, const TuneOptions& options);

class Tuner {
 public:
  // All but the options outlive it. The plan, a line for each run, and what is
  // decided go to `out`.
  Tuner(const Spec& spec, const Dimensions& dimensions, TrialRunner& runner,
        TuneOptions options, std::ostream& out);

  // Runs hvdliterun's defaults, which warms up and tells how much fits into the
  // time; the worlds; then, in the fastest, a race of settings; at last the
  // winner against the defaults in rounds of their own, if it is not clearly
  // slower and two rounds fit. A candidate of which a run failed is out; a
  // setting without which the winner is surely faster is given up while there
  // is time. Internal if the defaults fail twice in a row, FailedPrecondition
  // if no comparison fits into the time, Cancelled as the runner.
  absl::Status Search();

  // What is known so far.
  TuningResult Result() const;

 private:
  // One thing about a candidate that can be taken away.
  struct Part {
    std::string name;
    Candidate without;
    bool of_launcher = false;  // it is not the candidate's choice
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
  std::vector<Candidate> all_;  // that have been in a round
  int round_ = 0;               // the next one
  std::optional<Candidate> challenger_;
  std::optional<int> final_round_;  // the first of the last comparison
  std::vector<Part> parts_;         // that it judges
  std::string not_compared_;
  bool finished_ = false;
};

// The ranking, the recommendation and how sure it is, what was left out, and
// the command. `spec` has the program, `launcher` is how to call hvdliterun.
std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher);

}  // namespace hvdlite::scaling_sweep
