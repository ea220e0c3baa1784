#include "tools/scaling_sweep/tune/tuner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "support/progress_line.h"
#include "tools/scaling_sweep/tune/race.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr int kFewestLastRounds = 2;  // minimum for the last comparison
// A candidate below this share of the defaults' speed cannot win.
constexpr double kHopeless = 0.8;

// A candidate that is much slower than the defaults need not finish.
RunLimit LimitFor(double run_seconds) {
  return {.seconds = 10 + 5 * run_seconds,
          .source = "five times as long as the defaults"};
}

bool Has(const std::vector<Candidate>& candidates, const Candidate& one) {
  return std::count(candidates.begin(), candidates.end(), one) > 0;
}

}  // namespace

Tuner::Tuner(const Spec& spec, const Dimensions& dimensions,
             TrialRunner& runner, TuneOptions options, std::ostream& out)
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

// Speed relative to the defaults; nullopt: it failed, or has no runs.
std::optional<double> Tuner::Score(const Candidate& candidate) const {
  if (IsOut(candidate)) return std::nullopt;
  return MeanRatio(trials_.Ratios(candidate, defaults_));
}

// Removes candidates that the spec does not allow; the end reports them.
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

// Runs the next round. It fails if the defaults fail, because all candidates
// are compared with them.
absl::Status Tuner::RunRound(const std::vector<Candidate>& round,
                             const KeptTime& kept) {
  Remember(round);
  HVDLITE_RETURN_IF_ERROR(trials_.RunRound(round_++, round, kept));
  for (const auto& [number, trial] : trials_.RoundsOf(defaults_)) {
    if (trial.items_per_second) continue;
    return absl::InternalError(absl::StrCat(
        "a run of hvdliterun's defaults, the baseline, failed: ", trial.failure,
        "; fix that, and add --retry-failed"));
  }
  return absl::OkStatus();
}

// This round does not count, because the files that the program reads are not
// in memory yet.
absl::Status Tuner::RunDefaults() {
  out_ << "hvdliterun's defaults run once, to measure the time of a run"
       << std::endl;
  HVDLITE_RETURN_IF_ERROR(RunRound({defaults_}, {}));
  if (trials_.RoundsOf(defaults_).empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of hvdliterun's defaults takes longer than the ",
        support::FormatDuration(60 * options_.minutes),
        " of the whole search; use more --minutes, or make the program do less "
        "(a run of a minute is enough)"));
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

// Runs the worlds, and chooses the fastest as the base.
absl::Status Tuner::FindWorld() {
  while (worlds_.size() > static_cast<size_t>(effort_.worlds)) {
    left_out_.push_back({Name(worlds_.back()), "no time; use more --minutes"});
    worlds_.pop_back();
  }
  std::vector<Candidate> round = worlds_;
  round.insert(round.begin(), defaults_);
  for (int i = 0; i < effort_.world_rounds; ++i) {
    const KeptTime kept = KeptForTheEnd(defaults_);
    if (i > 0 &&
        trials_.SecondsOf(round) > trials_.seconds_left() - kept.seconds) {
      break;
    }
    HVDLITE_RETURN_IF_ERROR(RunRound(round, kept));
  }
  for (const Candidate& world : worlds_) {
    if (trials_.RoundsOf(world).empty()) {
      left_out_.push_back({Name(world), "no time; use more --minutes"});
    }
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

// Reserves the time of a run of the defaults and of the last comparison with
// the best candidate so far.
KeptTime Tuner::KeptForTheEnd(const Candidate& best) const {
  const double seconds = trials_.SecondsOf(defaults_);
  const double last =
      std::max(effort_.final_rounds * 2 * seconds,
               kFewestFinalRounds * trials_.SecondsOf({defaults_, best}));
  return {.seconds = seconds + last};
}

// Keeps the first candidates (the best so far) that fit into the time together
// with the reserved time.
void Tuner::KeepWhatFits(std::vector<Candidate>& left,
                         const KeptTime& kept) const {
  double seconds = kept.seconds;
  size_t fit = 0;
  for (const Candidate& candidate : left) {
    seconds += trials_.SecondsOf(candidate);
    if (seconds > trials_.seconds_left()) break;
    ++fit;
  }
  left.resize(fit);
}

absl::Status Tuner::RaceSettings() {
  std::vector<Candidate> left = Runnable(
      SettingCandidates(dimensions_, base_,
                        static_cast<size_t>(effort_.candidates), spec_.seed()));
  // The best world stays in the race, even if no settings are tried in it.
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
      SortByScore(fit);
      const KeptTime kept = KeptForTheEnd(fit.front());
      KeepWhatFits(fit, kept);
      if (fit.size() < 2) break;
      left = std::move(fit);
      std::vector<Candidate> round = left;
      round.insert(round.begin(), defaults_);
      HVDLITE_RETURN_IF_ERROR(RunRound(round, kept));
    }
    KeepBetterHalf(left, stage == 0);
  }
  std::erase_if(left, [&](const Candidate& one) { return !Score(one); });
  SortByScore(left);
  if (left.empty()) return absl::OkStatus();
  if (IsHopeless(left.front())) {
    not_compared_ = absl::StrCat(
        Name(left.front()),
        " is clearly slower than the defaults; there was no last comparison");
  } else {
    challenger_ = left.front();
  }
  return absl::OkStatus();
}

// Keeps the better half, rounded up, of the candidates that did not fail and
// are not clearly slower than the best. After the first stage it adds the
// combination of the best options, beside at least one measured candidate.
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
  const size_t half = (left.size() + more + 1) / 2 - more;
  left.resize(std::max(half, std::min<size_t>(left.size(), 1)));
  if (combined) left.push_back(*combined);
}

// Returns the parts of a candidate: its settings, and hvdliterun's defaults.
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
  if (settings == 1) parts.clear();  // without it, the defaults remain
  HVDLITE_ASSIGN_OR_RETURN(const Configuration configuration,
                           ConfigurationOf(spec_, dimensions_, candidate));
  HVDLITE_ASSIGN_OR_RETURN(const LaunchAnswer answer,
                           runner_.Ask(configuration));
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

bool Tuner::IsHopeless(const Candidate& candidate) const {
  return Score(candidate).value_or(0) < kHopeless ||
         IsClearlySlower(trials_.Ratios(candidate, defaults_));
}

// Runs as many candidates and rounds as the time allows, the defaults and the
// challenger first.
absl::Status Tuner::RunLastRounds() {
  HVDLITE_ASSIGN_OR_RETURN(parts_, PartsOf(*challenger_));
  std::vector<Candidate> compared = {defaults_, *challenger_};
  if (!challenger_->alone && !IsOut(alone_)) compared.push_back(alone_);
  for (const Part& part : parts_) {
    if (!Has(compared, part.without)) compared.push_back(part.without);
  }
  compared = Runnable(compared);
  const double pair_seconds = trials_.SecondsOf({defaults_, *challenger_});
  if (kFewestLastRounds * pair_seconds > trials_.seconds_left()) {
    parts_.clear();
    return absl::OkStatus();
  }
  const auto fits = [&](int rounds) {
    return rounds * trials_.SecondsOf(compared) <= trials_.seconds_left();
  };
  const auto keep_what_fits_into = [&](int rounds) {
    while (compared.size() > 2 && !fits(rounds)) compared.pop_back();
  };
  compared.resize(
      std::min(compared.size(), static_cast<size_t>(effort_.compared)));
  keep_what_fits_into(effort_.final_rounds);
  std::erase_if(parts_,
                [&](const Part& part) { return !Has(compared, part.without); });
  out_ << "last comparison: " << Name(*challenger_) << std::endl;
  trials_.PlanRuns(static_cast<int64_t>(compared.size()) *
                   effort_.final_rounds);
  final_round_ = trials_.WholeRound(round_, compared);
  for (int i = 0; i < effort_.final_rounds; ++i) {
    const int needed = std::max(1, kFewestFinalRounds - i);
    keep_what_fits_into(needed);
    if (!fits(1)) break;
    round_ = trials_.WholeRound(i == 0 ? *final_round_ : round_, compared);
    HVDLITE_RETURN_IF_ERROR(RunRound(
        compared,
        {.seconds = needed * trials_.SecondsOf({defaults_, *challenger_}),
         .first = 2}));
  }
  return absl::OkStatus();
}

// Compares the challenger with the defaults and with itself without each of its
// parts, in new rounds, because the earlier ones are biased in its favour.
absl::Status Tuner::CompareAtLast() {
  while (challenger_) {
    HVDLITE_RETURN_IF_ERROR(RunLastRounds());
    if (!HasLastRounds()) {
      not_compared_ = absl::StrCat(
          Name(*challenger_),
          " had no time for the last comparison; use more --minutes");
      break;
    }
    const std::optional<Candidate> better = LessWhatHarms();
    if (!better) break;
    const double seconds =
        kFewestFinalRounds * trials_.SecondsOf({defaults_, *better});
    if (*better == defaults_ || seconds > trials_.seconds_left()) break;
    out_ << Name(*better) << " is faster than with all settings" << std::endl;
    challenger_ = *better;
  }
  return absl::OkStatus();
}

// Returns the challenger without the first setting that makes it slower.
std::optional<Candidate> Tuner::LessWhatHarms() const {
  for (const Part& part : parts_) {
    if (!part.of_launcher && IsSure(part.without, *challenger_)) {
      return part.without;
    }
  }
  return std::nullopt;
}

}  // namespace hvdlite::scaling_sweep
