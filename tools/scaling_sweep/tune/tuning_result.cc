// Collects the results of a Tuner.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/tune/tuner.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kReasonSeed = 1;

}  // namespace

Reason Tuner::Judged(const Candidate& one, const Candidate& other,
                     const std::string& name) const {
  Reason reason = {.name = name, .ratio = {}};
  reason.failed = IsOut(one) || IsOut(other);
  if (reason.failed) return reason;
  reason.paired =
      trials_.Ratios(one, other, HasLastRounds() ? *final_round_ : 0);
  if (reason.paired.ratios.empty()) return reason;
  reason.ratio = support::EstimateRatio({reason.paired.ratios}, kReasonSeed);
  reason.compared = true;
  return reason;
}

bool Tuner::HasLastRounds() const {
  return challenger_ && final_round_ &&
         !trials_.Ratios(*challenger_, defaults_, *final_round_).ratios.empty();
}

bool Tuner::IsSure(const Candidate& faster, const Candidate& slower) const {
  const Reason reason = Judged(faster, slower, "");
  return reason.compared && Judge(reason.ratio) == Significance::kFaster;
}

TuningResult Tuner::Result() const {
  TuningResult result = {.challenger = challenger_,
                         .finished = finished_,
                         .not_compared = not_compared_,
                         .recommended = defaults_,
                         .left_out = left_out_,
                         .untried = Untried(),
                         .counts = trials_.counts()};
  result.ranking = Ranking();
  if (!result.challenger) {  // the best so far
    std::vector<Candidate> others = all_;
    std::erase_if(others, [&](const Candidate& one) {
      return one == defaults_ || !Score(one);
    });
    SortByScore(others);
    if (!others.empty()) result.challenger = others.front();
  }
  if (result.challenger) {
    const Candidate& challenger = *result.challenger;
    result.challenger_name = Name(challenger);
    result.against_launcher = Judged(challenger, defaults_, "");
    result.against_default = Judged(challenger, alone_, "");
    for (const Part& part : parts_) {
      result.settings.push_back(Judged(challenger, part.without, part.name));
    }
    if (finished_ && HasLastRounds() && IsSure(challenger, defaults_)) {
      result.recommended = challenger;
    }
  }
  result.launcher_against_default = Judged(defaults_, alone_, "");
  if (finished_ && HasLastRounds() && IsSure(alone_, result.recommended)) {
    result.recommended = alone_;
  }
  const absl::StatusOr<Configuration> configuration =
      ConfigurationOf(spec_, dimensions_, result.recommended);
  if (configuration.ok()) result.recommended_configuration = *configuration;
  return result;
}

// The order: the challenger, then by rounds and by speed; failed ones are last.
std::vector<RankedCandidate> Tuner::Ranking() const {
  std::vector<RankedCandidate> ranking;
  for (const Candidate& candidate : all_) {
    const Rounds& rounds = trials_.RoundsOf(candidate);
    // The parts of the challenger have their own table.
    if (rounds.empty() || !candidate.less.empty()) continue;
    RankedCandidate ranked = {.name = Name(candidate),
                              .by_defaults = Score(candidate)};
    std::vector<double> speeds;
    for (const auto& [round, trial] : rounds) {
      if (round == 0 && rounds.size() > 1) continue;  // round 0 is warm-up
      ++ranked.rounds;
      if (trial.disturbed) ++ranked.disturbed;
      if (trial.items_per_second) speeds.push_back(*trial.items_per_second);
    }
    if (!IsOut(candidate)) ranked.items_per_second = support::Median(speeds);
    ranking.push_back(std::move(ranked));
  }
  const auto key = [&](const RankedCandidate& ranked) {
    return std::make_tuple(challenger_ && ranked.name == Name(*challenger_),
                           ranked.items_per_second.has_value(),
                           ranked.by_defaults.value_or(0));
  };
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](const RankedCandidate& a, const RankedCandidate& b) {
                     return key(a) > key(b);
                   });
  return ranking;
}

// Returns options that no candidate with a run had, such as "chunk=1M".
std::vector<std::string> Tuner::Untried() const {
  std::vector<std::string> untried;
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    for (int option = 1; option < dimensions_[i].option_size(); ++option) {
      const bool tried =
          std::any_of(all_.begin(), all_.end(), [&](const Candidate& one) {
            return one.options[i] == static_cast<size_t>(option) &&
                   !trials_.RoundsOf(one).empty();
          });
      if (tried) continue;
      untried.push_back(absl::StrCat(dimensions_[i].name(), "=",
                                     dimensions_[i].option(option).name()));
    }
  }
  return untried;
}

}  // namespace hvdlite::scaling_sweep
