#include "tools/scaling_sweep/tune/tuner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/tune/race.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kFewestFinalRounds = 3;

// Of a candidate that is much slower than the defaults no more has to be known.
double LimitFor(double run_seconds) { return 10 + 5 * run_seconds; }

bool Has(const std::vector<Candidate>& candidates, const Candidate& one) {
  return std::count(candidates.begin(), candidates.end(), one) > 0;
}

}  // namespace

Tuner::Tuner(const Spec& spec, const Dimensions& dimensions,
             const TrialRunner& runner, TuneOptions options, std::ostream& out)
    : spec_(spec),
      dimensions_(dimensions),
      runner_(runner),
      options_(std::move(options)),
      out_(out),
      trials_(spec, dimensions, runner, 60 * options_.minutes, out),
      defaults_(LaunchersDefaults(dimensions)),
      alone_(LibTorchsDefaults(dimensions)),
      base_{.world = defaults_},
      left_out_(options_.left_out) {}

absl::Status Tuner::Search() {
  HVDLITE_RETURN_IF_ERROR(RunDefaults());
  HVDLITE_RETURN_IF_ERROR(FindWorld());
  HVDLITE_RETURN_IF_ERROR(RaceSettings());
  HVDLITE_RETURN_IF_ERROR(CompareAtLast());
  finished_ = true;
  return absl::OkStatus();
}

std::string Tuner::Name(const Candidate& candidate) const {
  return NameOf(dimensions_, candidate);
}

bool Tuner::IsOut(const Candidate& candidate) const {
  return HasFailed(trials_.RoundsOf(candidate));
}

// By the defaults; nullopt: it failed, or nothing is known.
std::optional<double> Tuner::Score(const Candidate& candidate) const {
  if (IsOut(candidate)) return std::nullopt;
  return MeanRatio(trials_.Ratios(candidate, defaults_));
}

// Less those that the SPEC does not allow, which are told at the end.
std::vector<Candidate> Tuner::Runnable(std::vector<Candidate> candidates) {
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const absl::Status status =
        ConfigurationOf(spec_, dimensions_, candidate).status();
    if (status.ok()) return false;
    const LeftOut left_out = {Name(candidate), std::string(status.message())};
    if (std::count(left_out_.begin(), left_out_.end(), left_out) == 0) {
      left_out_.push_back(left_out);
    }
    return true;
  });
  return candidates;
}

void Tuner::Remember(const std::vector<Candidate>& candidates) {
  for (const Candidate& candidate : candidates) {
    if (!Has(all_, candidate)) all_.push_back(candidate);
  }
}

void Tuner::SortByScore(std::vector<Candidate>& candidates) const {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     return Score(a).value_or(0) > Score(b).value_or(0);
                   });
}

absl::Status Tuner::RunDefaults() {
  out_ << "hvdliterun's defaults run once, to see how long that takes"
       << std::endl;
  trials_.LimitRuns(60 * options_.minutes);
  Remember({defaults_});
  HVDLITE_RETURN_IF_ERROR(trials_.RunRound(0, {defaults_}));
  if (IsOut(defaults_)) {
    return absl::InternalError(absl::StrCat(
        "a run of hvdliterun's defaults, which all else is compared with, "
        "failed: ",
        trials_.RoundsOf(defaults_).at(0).failure,
        "; mend that, and add --retry-failed; a run that takes too long needs "
        "more --minutes, or less to do"));
  }
  worlds_ = Runnable(WorldCandidates(dimensions_));
  worlds_.push_back(alone_);
  const double run_seconds = trials_.SecondsOf(defaults_);
  HVDLITE_ASSIGN_OR_RETURN(
      effort_, EffortFor(WishesOf(spec_, static_cast<int>(worlds_.size()),
                                  options_.minutes),
                         run_seconds, trials_.seconds_left() + run_seconds));
  trials_.PlanRuns(effort_.runs() - 1);
  trials_.LimitRuns(LimitFor(run_seconds));
  out_ << PlanText(dimensions_, effort_, run_seconds, options_) << std::flush;
  return absl::OkStatus();
}

// Runs the worlds, and begins in the fastest.
absl::Status Tuner::FindWorld() {
  while (worlds_.size() > static_cast<size_t>(effort_.worlds)) {
    left_out_.push_back({Name(worlds_.back()), "no time; --minutes gives it"});
    worlds_.pop_back();
  }
  std::vector<Candidate> round = worlds_;
  round.insert(round.begin(), defaults_);
  Remember(round);
  for (int i = 0; i < effort_.world_rounds; ++i) {
    if (i > 0 &&
        trials_.SecondsOf(round) > trials_.seconds_left() - FinalSeconds()) {
      break;
    }
    HVDLITE_RETURN_IF_ERROR(trials_.RunRound(round_++, round));
  }
  SortByScore(worlds_);
  for (const Candidate& world : worlds_) {
    if (world.alone || Score(world).value_or(0) <= 1) continue;
    base_.world = world;
    break;
  }
  const absl::StatusOr<Configuration> configuration =
      ConfigurationOf(spec_, dimensions_, base_.world);
  if (configuration.ok()) base_.ranks = configuration->ranks();
  out_ << "settings are tried with: " << Name(base_.world) << std::endl;
  return absl::OkStatus();
}

// What the last comparison takes at least.
double Tuner::FinalSeconds() const {
  return effort_.final_rounds * 2 * trials_.SecondsOf(defaults_);
}

// The first of them, which are the best so far; after them a round of the
// defaults and the rest of the search have to fit.
void Tuner::KeepWhatFits(std::vector<Candidate>& left, double reserve) const {
  double seconds = trials_.SecondsOf(defaults_);
  size_t fit = 0;
  for (const Candidate& candidate : left) {
    seconds += trials_.SecondsOf(candidate);
    if (seconds > trials_.seconds_left() - reserve) break;
    ++fit;
  }
  left.resize(fit);
}

absl::Status Tuner::RaceSettings() {
  std::vector<Candidate> left = Runnable(
      SettingCandidates(dimensions_, base_,
                        static_cast<size_t>(effort_.candidates), spec_.seed()));
  // The best of the worlds goes on, though nothing is tried in it.
  if (!worlds_.empty() && !IsOut(worlds_.front()) &&
      !Has(left, worlds_.front())) {
    left.insert(left.begin(), worlds_.front());
  }
  if (effort_.candidates > 0) {
    trials_.PlanRuns(
        RunsOfRace(static_cast<int64_t>(left.size()), effort_.first_rounds) +
        int64_t{effort_.compared} * effort_.final_rounds);
  }
  for (int stage = 0; effort_.candidates > 0 && left.size() > 1; ++stage) {
    for (int i = 0; i < RoundsOfStage(stage, effort_.first_rounds); ++i) {
      std::vector<Candidate> fit = left;
      KeepWhatFits(fit, FinalSeconds());
      if (fit.size() < 2) break;
      left = std::move(fit);
      std::vector<Candidate> round = left;
      round.insert(round.begin(), defaults_);
      Remember(round);
      HVDLITE_RETURN_IF_ERROR(trials_.RunRound(round_++, round));
    }
    KeepBetterHalf(left, stage == 0);
  }
  std::erase_if(left, [&](const Candidate& one) { return IsOut(one); });
  if (!left.empty()) challenger_ = left.front();
  return absl::OkStatus();
}

// The better half, rounded up, of those that did not fail; of it no more than
// what is not clearly slower than the best; and, after the first stage, the
// best options together.
void Tuner::KeepBetterHalf(std::vector<Candidate>& left, bool first) {
  std::erase_if(left, [&](const Candidate& one) { return IsOut(one); });
  SortByScore(left);
  std::erase_if(left, [&](const Candidate& one) {
    return one != left.front() &&
           IsClearlySlower(trials_.Ratios(one, left.front()));
  });
  std::optional<Candidate> combined;
  if (first) {
    std::vector<std::optional<double>> scores;
    for (const Candidate& candidate : all_) scores.push_back(Score(candidate));
    combined = CombineBest(dimensions_, base_, all_, scores);
    if (combined && (Has(all_, *combined) ||
                     !ConfigurationOf(spec_, dimensions_, *combined).ok())) {
      combined.reset();
    }
  }
  const size_t more = combined ? 1 : 0;
  left.resize((left.size() + more + 1) / 2 - more);
  if (combined) left.push_back(*combined);
}

// Of a candidate: its settings, and what hvdliterun does for it by itself.
absl::StatusOr<std::vector<Tuner::Part>> Tuner::PartsOf(
    const Candidate& candidate) const {
  std::vector<Part> parts;
  if (candidate.alone) return parts;
  size_t settings = 0;
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    if (candidate.options[i] == 0) continue;
    ++settings;
    const auto option = static_cast<int>(candidate.options[i]);
    parts.push_back({.name = absl::StrCat(dimensions_[i].name(), "=",
                                          dimensions_[i].option(option).name()),
                     .without = Without(candidate, i)});
  }
  if (settings == 1) parts.clear();  // without it, it is the defaults
  HVDLITE_ASSIGN_OR_RETURN(const Configuration configuration,
                           ConfigurationOf(spec_, dimensions_, candidate));
  HVDLITE_ASSIGN_OR_RETURN(const LaunchAnswer answer,
                           runner_.ask(configuration));
  if (!answer.plan) return parts;
  for (const LauncherDefault& own : LauncherDefaults(*answer.plan)) {
    parts.push_back({.name = absl::StrCat("hvdliterun's ", Describe(own)),
                     .without = candidate,
                     .of_launcher = true});
    parts.back().without.less = own.name;
    parts.back().without.ablation = AblationOf(*answer.plan, own);
  }
  return parts;
}

absl::Status Tuner::RunLastRounds() {
  HVDLITE_ASSIGN_OR_RETURN(parts_, PartsOf(*challenger_));
  std::vector<Candidate> compared = {defaults_, *challenger_};
  if (!challenger_->alone && !IsOut(alone_)) compared.push_back(alone_);
  for (const Part& part : parts_) {
    if (!Has(compared, part.without)) compared.push_back(part.without);
  }
  compared = Runnable(compared);
  // As many of them as the time allows.
  const auto fits = [&](int rounds) {
    return rounds * trials_.SecondsOf(compared) <= trials_.seconds_left();
  };
  while (compared.size() > 2 &&
         (compared.size() > static_cast<size_t>(effort_.compared) ||
          !fits(effort_.final_rounds))) {
    compared.pop_back();
  }
  std::erase_if(parts_,
                [&](const Part& part) { return !Has(compared, part.without); });
  Remember(compared);
  out_ << "last comparison: " << Name(*challenger_) << std::endl;
  trials_.PlanRuns(static_cast<int64_t>(compared.size()) *
                   effort_.final_rounds);
  final_round_ = trials_.WholeRound(round_, compared);
  for (int i = 0; i < effort_.final_rounds; ++i) {
    if (i >= 2 && !fits(1)) break;
    round_ = trials_.WholeRound(i == 0 ? *final_round_ : round_, compared);
    HVDLITE_RETURN_IF_ERROR(trials_.RunRound(round_++, compared));
  }
  return absl::OkStatus();
}

// The challenger against the defaults, and itself less each of its parts, by
// rounds of their own: those by which it was chosen flatter it.
absl::Status Tuner::CompareAtLast() {
  while (challenger_) {
    HVDLITE_RETURN_IF_ERROR(RunLastRounds());
    const std::optional<Candidate> better = LessWhatHarms();
    if (!better) break;
    const double seconds =
        kFewestFinalRounds * 2 * trials_.SecondsOf({defaults_, *challenger_});
    if (*better == defaults_ || seconds > trials_.seconds_left()) break;
    out_ << Name(*better) << " is faster than with all settings" << std::endl;
    challenger_ = *better;
  }
  return absl::OkStatus();
}

// Without its first setting that makes the challenger slower.
std::optional<Candidate> Tuner::LessWhatHarms() const {
  for (const Part& part : parts_) {
    if (!part.of_launcher && IsSure(part.without, *challenger_)) {
      return part.without;
    }
  }
  return std::nullopt;
}

Reason Tuner::Judged(const Candidate& one, const Candidate& other,
                     const std::string& name) const {
  Reason reason = {.name = name, .ratio = {}};
  if (IsOut(one) || IsOut(other)) return reason;
  reason.paired = trials_.Ratios(one, other, final_round_.value_or(0));
  if (reason.paired.ratios.empty()) return reason;
  reason.ratio = support::EstimateRatio({reason.paired.ratios}, kSeed);
  reason.compared = true;
  return reason;
}

bool Tuner::IsSure(const Candidate& faster, const Candidate& slower) const {
  const Reason reason = Judged(faster, slower, "");
  return reason.compared && Judge(reason.ratio) == Significance::kFaster;
}

TuningResult Tuner::Result() const {
  TuningResult result = {.challenger = challenger_,
                         .finished = finished_,
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
    if (finished_ && IsSure(challenger, defaults_)) {
      result.recommended = challenger;
    }
  }
  result.launcher_against_default = Judged(defaults_, alone_, "");
  if (finished_ && IsSure(alone_, result.recommended)) {
    result.recommended = alone_;
  }
  const absl::StatusOr<Configuration> configuration =
      ConfigurationOf(spec_, dimensions_, result.recommended);
  if (configuration.ok()) result.recommended_configuration = *configuration;
  return result;
}

// The challenger, then by rounds and by speed, and last what failed.
std::vector<RankedCandidate> Tuner::Ranking() const {
  std::vector<RankedCandidate> ranking;
  for (const Candidate& candidate : all_) {
    const Rounds& rounds = trials_.RoundsOf(candidate);
    // What only explains the challenger is told elsewhere.
    if (rounds.empty() || !candidate.less.empty()) continue;
    RankedCandidate ranked = {.name = Name(candidate),
                              .rounds = static_cast<int>(rounds.size()),
                              .by_defaults = Score(candidate)};
    std::vector<double> speeds;
    for (const auto& [round, trial] : rounds) {
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

// Options that no candidate had, as "chunk=1M".
std::vector<std::string> Tuner::Untried() const {
  std::vector<std::string> untried;
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    for (int option = 1; option < dimensions_[i].option_size(); ++option) {
      const bool tried =
          std::any_of(all_.begin(), all_.end(), [&](const Candidate& one) {
            return one.options[i] == static_cast<size_t>(option);
          });
      if (tried) continue;
      untried.push_back(absl::StrCat(dimensions_[i].name(), "=",
                                     dimensions_[i].option(option).name()));
    }
  }
  return untried;
}

}  // namespace hvdlite::scaling_sweep
