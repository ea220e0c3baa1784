// Tuner: finds the fastest setting of a program on this machine, and tells it.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/support/statistics.h"

namespace hvdlite::scaling_sweep {

// How much is run, as the SPEC says or by default.
struct Effort {
  int world_repeats = 2;
  size_t candidates = 24;  // of the first round
  int first_repeats = 1;
  int final_repeats = 5;
};

Effort EffortOf(const Spec& spec);

struct RankedCandidate {
  Candidate candidate;
  std::string name;
  int rounds = 0;                          // that it has been in
  int runs = 0;                            // that succeeded
  std::optional<double> items_per_second;  // median; nullopt: a run failed
};

// The winner against something, by pairs of repeats of the last comparison.
struct Reason {
  std::string name;              // what: "blas=Haswell"
  support::RatioEstimate ratio;  // items/s with it by those without it
  bool compared = false;         // no run of either failed
};

struct TuningResult {
  std::vector<RankedCandidate> ranking;  // the best first
  Configuration winner;
  Candidate winning;
  Reason against_default;   // LibTorch's
  Reason against_launcher;  // hvdliterun's defaults
  Reason launcher_against_default;
  // Each of the winner's settings, alone taken away; then what hvdliterun does
  // for it by itself.
  std::vector<Reason> settings;
  std::vector<std::string> untried;  // options that no candidate had
};

// What will be tried, in which order and how often; for people, before it
// begins.
std::string PlanText(const Spec& spec, const Dimensions& dimensions);

// How many runs there may still be after `samples`, and how long these take if
// each takes as long as those did; "" where nothing can be told.
std::string LeftText(const Spec& spec, const Dimensions& dimensions,
                     const std::vector<Sample>& samples);

// First the worlds; then, in the fastest, rounds of settings; then the last
// comparison. Runs through `runner`, whose results are `results`, so that what
// is there is not run again. Rounds, and candidates that cannot run, are
// announced on `out`. A candidate of which a run failed is out. The last
// comparison judges by runs of its own. Of it, a setting without which the
// winner is significantly faster is given up, and the comparison repeated, as
// for defaults that win instead since the winner is significantly slower. What
// hvdliterun does by itself is judged, and stays. Internal if no
// candidate succeeds; Cancelled as SweepRunner.
absl::StatusOr<TuningResult> TuneSettings(const Spec& spec,
                                          const Dimensions& dimensions,
                                          SweepRunner& runner,
                                          const ResultsFile& results,
                                          std::ostream& out);

// Ranking, why the winner wins, what was not tried, and the command that uses
// its settings. `spec`
// has the program, `launcher` is how to call hvdliterun.
std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher);

}  // namespace hvdlite::scaling_sweep
