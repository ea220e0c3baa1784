#include "tools/scaling_sweep/tune/tuner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/tune/candidate.h"
#include "tools/support/statistics.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kSeed = 1;

// Of the repeats from `begin` to before `end`.
struct Repeats {
  int begin = 0;
  int end = std::numeric_limits<int>::max();

  bool Have(int repeat) const { return repeat >= begin && repeat < end; }
};

// One thing about a candidate that can be taken away.
struct Part {
  std::string name;
  Candidate without;
  bool of_launcher = false;  // it is not the candidate's choice
};

class Tuning {
 public:
  Tuning(const Spec& spec, const Dimensions& dimensions, SweepRunner& runner,
         const ResultsFile& results, std::ostream& out)
      : spec_(spec),
        dimensions_(dimensions),
        runner_(runner),
        results_(results),
        out_(out),
        effort_(EffortOf(spec)),
        base_{.world = LaunchersDefaults()} {}

  absl::StatusOr<TuningResult> Find() {
    HVDLITE_ASSIGN_OR_RETURN(Candidate winner, Halve());
    HVDLITE_RETURN_IF_ERROR(Justify(winner));
    TuningResult result;
    result.winning = winner;
    HVDLITE_ASSIGN_OR_RETURN(result.winner,
                             ConfigurationOf(spec_, dimensions_, winner));
    result.against_default = Against(winner, LibTorchsDefaults(), "");
    result.against_launcher = Against(winner, LaunchersDefaults(), "");
    result.launcher_against_default =
        Against(LaunchersDefaults(), LibTorchsDefaults(), "");
    for (const Part& part : parts_) {
      result.settings.push_back(Against(winner, part.without, part.name));
    }
    result.ranking = Ranking(winner);
    result.untried = Untried();
    return result;
  }

 private:
  std::string Name(const Candidate& candidate) const {
    return NameOf(dimensions_, candidate);
  }

  Candidate LaunchersDefaults() const {
    return {.options = std::vector<size_t>(dimensions_.size(), 0)};
  }

  Candidate LibTorchsDefaults() const {
    Candidate candidate = LaunchersDefaults();
    candidate.alone = true;
    return candidate;
  }

  bool CanRun(const Candidate& candidate) const {
    return ConfigurationOf(spec_, dimensions_, candidate).ok();
  }

  // Of `repeats` only: what a round decides must not depend on whether later
  // ones have been run already.
  std::vector<Sample> SamplesIn(const Candidate& candidate,
                                const Repeats& repeats) const {
    const absl::StatusOr<Configuration> configuration =
        ConfigurationOf(spec_, dimensions_, candidate);
    if (!configuration.ok()) return {};
    std::vector<Sample> samples =
        SamplesOf(results_.samples(), Key(*configuration));
    std::erase_if(samples, [&](const Sample& sample) {
      return !repeats.Have(sample.repeat);
    });
    return samples;
  }

  // Items/s by repeat; none if there are none, or if one of the runs failed.
  std::map<int, double> SpeedsOf(const Candidate& candidate,
                                 const Repeats& repeats) const {
    std::map<int, double> speeds;
    for (const Sample& sample : SamplesIn(candidate, repeats)) {
      if (!sample.items_per_second) return {};
      speeds[sample.repeat] = *sample.items_per_second;
    }
    return speeds;
  }

  std::optional<double> MedianOf(const Candidate& candidate,
                                 const Repeats& repeats) const {
    std::vector<double> speeds;
    for (const auto& [repeat, speed] : SpeedsOf(candidate, repeats)) {
      speeds.push_back(speed);
    }
    if (speeds.empty()) return std::nullopt;
    return support::Quantile(speeds, 0.5);
  }

  std::vector<std::optional<double>> MediansOf(
      const std::vector<Candidate>& candidates, const Repeats& repeats) const {
    std::vector<std::optional<double>> medians;
    for (const Candidate& candidate : candidates) {
      medians.push_back(MedianOf(candidate, repeats));
    }
    return medians;
  }

  absl::Status RunAll(const std::vector<Candidate>& candidates,
                      const Repeats& repeats) {
    std::vector<Configuration> configurations;
    for (const Candidate& candidate : candidates) {
      HVDLITE_ASSIGN_OR_RETURN(configurations.emplace_back(),
                               ConfigurationOf(spec_, dimensions_, candidate));
    }
    std::vector<PlannedRun> runs = RunOrder(configurations.size(), repeats.end,
                                            spec_.order(), spec_.seed());
    std::erase_if(
        runs, [&](const PlannedRun& run) { return !repeats.Have(run.repeat); });
    return runner_.RunAll(configurations, runs);
  }

  // Less those that cannot run, which are named on `out` once.
  std::vector<Candidate> Runnable(std::vector<Candidate> candidates) {
    std::erase_if(candidates, [&](const Candidate& candidate) {
      const absl::Status status =
          ConfigurationOf(spec_, dimensions_, candidate).status();
      if (status.ok()) return false;
      if (left_out_.insert(Name(candidate)).second) {
        out_ << "left out: " << Name(candidate) << ": " << status.message()
             << std::endl;
      }
      return true;
    });
    return candidates;
  }

  // Runs the worlds, and begins in the fastest.
  absl::Status FindWorld() {
    const std::vector<Candidate> worlds =
        Runnable(WorldCandidates(dimensions_));
    repeats_ = {.begin = 0, .end = effort_.world_repeats};
    out_ << "worlds: " << worlds.size() << " candidates, "
         << effort_.world_repeats << " runs each" << std::endl;
    HVDLITE_RETURN_IF_ERROR(RunAll(worlds, repeats_));
    base_.world =
        FastestWorld(dimensions_, worlds, MediansOf(worlds, repeats_));
    const absl::StatusOr<Configuration> configuration =
        ConfigurationOf(spec_, dimensions_, base_.world);
    if (configuration.ok()) base_.ranks = configuration->ranks();
    out_ << "settings are tried with: " << Name(base_.world) << "\n"
         << LeftText(spec_, dimensions_, results_.samples()) << std::flush;
    return absl::OkStatus();
  }

  absl::StatusOr<Candidate> Halve() {
    HVDLITE_RETURN_IF_ERROR(FindWorld());
    all_ = Runnable(
        StartCandidates(dimensions_, base_, effort_.candidates, spec_.seed()));
    std::vector<Candidate> left = all_;
    for (int round = 0;; ++round) {
      const int repeats = RepeatsAfterRound(effort_.first_repeats, round);
      repeats_ = {.begin = 0, .end = repeats};
      out_ << "round " << round + 1 << ": " << left.size() << " candidates, "
           << repeats << (repeats == 1 ? " run" : " runs") << " each"
           << std::endl;
      HVDLITE_RETURN_IF_ERROR(RunAll(left, repeats_));
      for (const Candidate& candidate : left) ++rounds_[Name(candidate)];
      std::vector<Candidate> better;
      for (const size_t index : BetterHalf(MediansOf(left, repeats_))) {
        better.push_back(left[index]);
      }
      if (better.empty()) {
        return absl::InternalError(
            absl::StrCat("of every candidate a run has failed; see runs/ in '",
                         results_.directory(), "' for what they wrote"));
      }
      if (round == 0) AddCombination(better);
      if (better.size() == 1) return better.front();
      left = std::move(better);
    }
  }

  void AddCombination(std::vector<Candidate>& left) {
    const std::optional<Candidate> combined =
        CombineBest(dimensions_, base_, all_, MediansOf(all_, repeats_));
    if (!combined || !CanRun(*combined) ||
        std::count(all_.begin(), all_.end(), *combined) > 0) {
      return;
    }
    left.push_back(*combined);
    all_.push_back(*combined);
  }

  // Of the winner: its settings, and what hvdliterun does for it by itself.
  absl::StatusOr<std::vector<Part>> PartsOf(const Candidate& winner) {
    std::vector<Part> parts;
    if (winner.alone) return parts;
    for (size_t i = 0; i < dimensions_.size(); ++i) {
      if (winner.options[i] == 0) continue;
      const auto option = static_cast<int>(winner.options[i]);
      parts.push_back(
          {.name = absl::StrCat(dimensions_[i].name(), "=",
                                dimensions_[i].option(option).name()),
           .without = Without(winner, i),
           .of_launcher = false});
    }
    HVDLITE_ASSIGN_OR_RETURN(const Configuration configuration,
                             ConfigurationOf(spec_, dimensions_, winner));
    HVDLITE_ASSIGN_OR_RETURN(const std::optional<LaunchPlan> plan,
                             runner_.PlanFor(configuration));
    if (!plan) return parts;
    for (const LauncherDefault& own : LauncherDefaults(*plan)) {
      parts.push_back({.name = absl::StrCat("hvdliterun's ", Describe(own)),
                       .without = winner,
                       .of_launcher = true});
      parts.back().without.less = own.name;
      parts.back().without.ablation = AblationOf(*plan, own);
    }
    return parts;
  }

  // The winner, what it is compared with at last - both defaults, and itself
  // less each of its parts -, each once, less what cannot run.
  std::vector<Candidate> Compared(const Candidate& winner) const {
    std::vector<Candidate> wanted = {LibTorchsDefaults(), LaunchersDefaults(),
                                     winner};
    for (const Part& part : parts_) wanted.push_back(part.without);
    std::vector<Candidate> compared;
    for (const Candidate& candidate : wanted) {
      if (CanRun(candidate) &&
          std::count(compared.begin(), compared.end(), candidate) == 0) {
        compared.push_back(candidate);
      }
    }
    return compared;
  }

  // Compares the winner with both defaults, and with itself less each of its
  // parts; gives up settings that make it slower. Each comparison has runs of
  // its own: those by which the winner was chosen flatter it, and those of the
  // others were made at another time.
  absl::Status Justify(Candidate& winner) {
    while (true) {
      HVDLITE_ASSIGN_OR_RETURN(parts_, PartsOf(winner));
      const std::vector<Candidate> compared = Compared(winner);
      repeats_ = {.begin = repeats_.end,
                  .end = repeats_.end + effort_.final_repeats};
      out_ << "last comparison: " << Name(winner) << std::endl;
      HVDLITE_RETURN_IF_ERROR(RunAll(compared, repeats_));
      for (const Candidate& candidate : compared) {
        if (std::count(all_.begin(), all_.end(), candidate) == 0) {
          all_.push_back(candidate);
        }
      }
      const Candidate before = winner;
      if (const std::optional<Candidate> better = LessWhatHarms(winner)) {
        winner = *better;
      } else {
        HVDLITE_RETURN_IF_ERROR(YieldToDefaults(winner));
      }
      // LibTorch's defaults have no parts to judge.
      if (winner == before || winner.alone) break;
    }
    if (winner.alone) parts_.clear();
    return absl::OkStatus();
  }

  bool IsSlower(const Candidate& candidate, const Candidate& other) const {
    const Reason reason = Against(candidate, other, "");
    return reason.compared && Judge(reason.ratio) == Significance::kSlower;
  }

  // Without its first setting that makes the winner slower.
  std::optional<Candidate> LessWhatHarms(const Candidate& winner) const {
    for (const Part& part : parts_) {
      if (!part.of_launcher && IsSlower(winner, part.without)) {
        return part.without;
      }
    }
    return std::nullopt;
  }

  // Makes a default the winner if the last comparison found the winner slower
  // than it, or if a run of the winner failed there.
  absl::Status YieldToDefaults(Candidate& winner) const {
    for (const Candidate& candidate :
         {LaunchersDefaults(), LibTorchsDefaults()}) {
      if (candidate == winner || !MedianOf(candidate, repeats_)) continue;
      const bool failed = !MedianOf(winner, repeats_);
      if (!failed && !IsSlower(winner, candidate)) continue;
      out_ << Name(winner) << (failed ? " failed" : " was slower") << "; "
           << Name(candidate) << " win" << std::endl;
      winner = candidate;
    }
    if (MedianOf(winner, repeats_)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        "the winner, ", Name(winner),
        ", failed in the last comparison, and so did the defaults; see runs/ "
        "in '",
        results_.directory(), "' for what they wrote"));
  }

  // By the runs of the last comparison.
  Reason Against(const Candidate& winner, const Candidate& other,
                 const std::string& name) const {
    Reason reason = {.name = name, .ratio = {}};
    const std::map<int, double> theirs = SpeedsOf(other, repeats_);
    std::vector<double> ratios;
    for (const auto& [repeat, speed] : SpeedsOf(winner, repeats_)) {
      const auto found = theirs.find(repeat);
      if (found != theirs.end()) ratios.push_back(speed / found->second);
    }
    if (ratios.empty()) return reason;
    reason.ratio = support::EstimateRatio({ratios}, kSeed);
    reason.compared = true;
    return reason;
  }

  // The winner, then by rounds, then by speed, and last what failed; what only
  // the last comparison has run is left out.
  std::vector<RankedCandidate> Ranking(const Candidate& winner) const {
    std::vector<RankedCandidate> ranking;
    for (const Candidate& candidate : all_) {
      const std::string name = Name(candidate);
      const auto rounds = rounds_.find(name);
      if (rounds == rounds_.end() && candidate != winner) continue;
      const std::vector<Sample> samples = SamplesIn(candidate, {});
      ranking.push_back({.candidate = candidate,
                         .name = name,
                         .rounds = rounds == rounds_.end() ? 0 : rounds->second,
                         .runs = static_cast<int>(std::count_if(
                             samples.begin(), samples.end(),
                             [](const Sample& sample) {
                               return sample.items_per_second.has_value();
                             })),
                         .items_per_second = MedianOf(candidate, {})});
    }
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](const RankedCandidate& a, const RankedCandidate& b) {
                       const auto key = [&](const RankedCandidate& ranked) {
                         return std::make_tuple(
                             ranked.candidate == winner,
                             ranked.items_per_second.has_value(), ranked.rounds,
                             ranked.items_per_second.value_or(-1));
                       };
                       return key(a) > key(b);
                     });
    return ranking;
  }

  // Options that no candidate had, as "chunk=1M".
  std::vector<std::string> Untried() const {
    std::vector<std::string> untried;
    for (size_t i = 0; i < dimensions_.size(); ++i) {
      for (int option = 1; option < dimensions_[i].option_size(); ++option) {
        const bool tried = std::any_of(
            all_.begin(), all_.end(), [&](const Candidate& candidate) {
              return candidate.options[i] == static_cast<size_t>(option);
            });
        if (tried) continue;
        untried.push_back(absl::StrCat(dimensions_[i].name(), "=",
                                       dimensions_[i].option(option).name()));
      }
    }
    return untried;
  }

  const Spec& spec_;
  const Dimensions& dimensions_;
  SweepRunner& runner_;
  const ResultsFile& results_;
  std::ostream& out_;
  const Effort effort_;
  SearchBase base_;
  std::set<std::string> left_out_;  // names
  std::vector<Candidate> all_;
  std::map<std::string, int> rounds_;  // by name
  // Of the round, or the comparison, that is under way or was last.
  Repeats repeats_;
  std::vector<Part> parts_;  // of the winner of the last comparison
};

}  // namespace

Effort EffortOf(const Spec& spec) {
  Effort effort;
  const Tune& tune = spec.tune();
  if (tune.candidates() > 0) {
    effort.candidates = static_cast<size_t>(tune.candidates());
  }
  if (tune.first_repeats() > 0) effort.first_repeats = tune.first_repeats();
  if (tune.final_repeats() > 0) effort.final_repeats = tune.final_repeats();
  return effort;
}

absl::StatusOr<TuningResult> TuneSettings(const Spec& spec,
                                          const Dimensions& dimensions,
                                          SweepRunner& runner,
                                          const ResultsFile& results,
                                          std::ostream& out) {
  return Tuning(spec, dimensions, runner, results, out).Find();
}

}  // namespace hvdlite::scaling_sweep
