#include "tools/scaling_sweep/tuner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdlite_bench/statistics.h"
#include "tools/scaling_sweep/comparison.h"
#include "tools/scaling_sweep/run_order.h"
#include "tools/scaling_sweep/successive_halving.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr size_t kDefaultCandidates = 16;
constexpr int kDefaultFinalRepeats = 5;
constexpr uint64_t kSeed = 1;
constexpr int kAllRepeats = std::numeric_limits<int>::max();

class Tuning {
 public:
  Tuning(const Spec& spec, const Dimensions& dimensions, SweepRunner& runner,
         const ResultsFile& results, std::ostream& out)
      : spec_(spec),
        dimensions_(dimensions),
        runner_(runner),
        results_(results),
        out_(out) {}

  absl::StatusOr<TuningResult> Find() {
    HVDLITE_ASSIGN_OR_RETURN(Candidate winner, Halve());
    HVDLITE_RETURN_IF_ERROR(Justify(winner));
    TuningResult result;
    result.winning = winner;
    HVDLITE_ASSIGN_OR_RETURN(result.winner,
                             ConfigurationOf(spec_, dimensions_, winner));
    result.against_default = Against(winner, all_.front(), "");
    for (size_t i = 0; i < dimensions_.size(); ++i) {
      if (winner.options[i] == 0) continue;
      const Candidate without = Without(winner, i);
      result.settings.push_back(
          Against(winner, without,
                  absl::StrCat(dimensions_[i].name(), "=",
                               dimensions_[i]
                                   .option(static_cast<int>(winner.options[i]))
                                   .name())));
    }
    result.ranking = Ranking(winner);
    return result;
  }

 private:
  std::string Name(const Candidate& candidate) const {
    return NameOf(dimensions_, candidate);
  }

  // Items/s by repeat, of the first `repeats`: what a round decides must not
  // depend on whether later ones have been run already.
  std::map<int, double> SpeedsOf(const Candidate& candidate,
                                 int repeats) const {
    std::map<int, double> speeds;
    const absl::StatusOr<Configuration> configuration =
        ConfigurationOf(spec_, dimensions_, candidate);
    if (!configuration.ok()) return speeds;
    for (const Sample& sample :
         SamplesOf(results_.samples(), Key(*configuration))) {
      if (sample.items_per_second && sample.repeat < repeats) {
        speeds[sample.repeat] = *sample.items_per_second;
      }
    }
    return speeds;
  }

  std::optional<double> MedianOf(const Candidate& candidate,
                                 int repeats) const {
    std::vector<double> speeds;
    for (const auto& [repeat, speed] : SpeedsOf(candidate, repeats)) {
      speeds.push_back(speed);
    }
    if (speeds.empty()) return std::nullopt;
    return tools::Quantile(speeds, 0.5);
  }

  std::vector<std::optional<double>> MediansOf(
      const std::vector<Candidate>& candidates, int repeats) const {
    std::vector<std::optional<double>> medians;
    for (const Candidate& candidate : candidates) {
      medians.push_back(MedianOf(candidate, repeats));
    }
    return medians;
  }

  absl::Status RunAll(const std::vector<Candidate>& candidates, int repeats) {
    std::vector<Configuration> configurations;
    for (const Candidate& candidate : candidates) {
      HVDLITE_ASSIGN_OR_RETURN(configurations.emplace_back(),
                               ConfigurationOf(spec_, dimensions_, candidate));
    }
    return runner_.RunAll(
        configurations,
        RunOrder(configurations.size(), repeats, spec_.order(), spec_.seed()));
  }

  absl::StatusOr<Candidate> Halve() {
    const Tune& tune = spec_.tune();
    all_ = StartCandidates(dimensions_,
                           tune.candidates() > 0
                               ? static_cast<size_t>(tune.candidates())
                               : kDefaultCandidates,
                           spec_.seed());
    std::vector<Candidate> left = all_;
    for (int round = 0;; ++round) {
      const int repeats =
          RepeatsAfterRound(std::max(1, tune.first_repeats()), round);
      out_ << "round " << round + 1 << ": " << left.size() << " candidates, "
           << repeats << (repeats == 1 ? " run" : " runs") << " each"
           << std::endl;
      HVDLITE_RETURN_IF_ERROR(RunAll(left, repeats));
      for (const Candidate& candidate : left) ++rounds_[Name(candidate)];
      std::vector<Candidate> better;
      for (const size_t index : BetterHalf(MediansOf(left, repeats))) {
        better.push_back(left[index]);
      }
      if (better.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat("no candidate has succeeded; see runs/ in '",
                         results_.directory(), "' for what they wrote"));
      }
      if (round == 0) AddCombination(better, repeats);
      if (better.size() == 1) return better.front();
      left = std::move(better);
    }
  }

  void AddCombination(std::vector<Candidate>& left, int repeats) {
    const std::optional<Candidate> combined =
        CombineBest(dimensions_, all_, MediansOf(all_, repeats));
    if (!combined || std::count(all_.begin(), all_.end(), *combined) > 0) {
      return;
    }
    left.push_back(*combined);
    all_.push_back(*combined);
  }

  int FinalRepeats() const {
    const int repeats = spec_.tune().final_repeats();
    return repeats > 0 ? repeats : kDefaultFinalRepeats;
  }

  // Compares the winner with the default, and with itself less each of its
  // settings; gives up what makes it slower.
  absl::Status Justify(Candidate& winner) {
    const int repeats = FinalRepeats();
    while (true) {
      std::vector<Candidate> compared = {all_.front()};
      std::vector<size_t> changed;
      if (winner != all_.front()) compared.push_back(winner);
      for (size_t i = 0; i < dimensions_.size(); ++i) {
        if (winner.options[i] == 0) continue;
        changed.push_back(i);
        compared.push_back(Without(winner, i));
      }
      out_ << "last comparison: " << Name(winner) << std::endl;
      HVDLITE_RETURN_IF_ERROR(RunAll(compared, repeats));
      for (const Candidate& candidate : compared) {
        if (std::count(all_.begin(), all_.end(), candidate) == 0) {
          all_.push_back(candidate);
        }
      }
      const auto harmful =
          std::find_if(changed.begin(), changed.end(), [&](size_t i) {
            const Reason reason = Against(winner, Without(winner, i), "");
            return reason.compared && Judge(reason.ratio) == Verdict::kSlower;
          });
      if (harmful == changed.end()) return absl::OkStatus();
      winner = Without(winner, *harmful);
    }
  }

  Reason Against(const Candidate& winner, const Candidate& other,
                 const std::string& name) const {
    Reason reason = {.name = name, .ratio = {}};
    const std::map<int, double> theirs = SpeedsOf(other, FinalRepeats());
    std::vector<double> ratios;
    for (const auto& [repeat, speed] : SpeedsOf(winner, FinalRepeats())) {
      const auto found = theirs.find(repeat);
      if (found != theirs.end()) ratios.push_back(speed / found->second);
    }
    if (ratios.empty()) return reason;
    reason.ratio = EstimateRatio({ratios}, kSeed);
    reason.compared = true;
    return reason;
  }

  // The winner, then by rounds, then by speed; what only the last comparison
  // has run is left out.
  std::vector<RankedCandidate> Ranking(const Candidate& winner) const {
    std::vector<RankedCandidate> ranking;
    for (const Candidate& candidate : all_) {
      const std::string name = Name(candidate);
      const auto rounds = rounds_.find(name);
      if (rounds == rounds_.end() && candidate != winner) continue;
      ranking.push_back(
          {.candidate = candidate,
           .name = name,
           .rounds = rounds == rounds_.end() ? 0 : rounds->second,
           .runs = static_cast<int>(SpeedsOf(candidate, kAllRepeats).size()),
           .items_per_second = MedianOf(candidate, kAllRepeats)});
    }
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](const RankedCandidate& a, const RankedCandidate& b) {
                       const auto key = [&](const RankedCandidate& ranked) {
                         return std::make_tuple(
                             ranked.candidate == winner, ranked.rounds,
                             ranked.items_per_second.value_or(-1));
                       };
                       return key(a) > key(b);
                     });
    return ranking;
  }

  const Spec& spec_;
  const Dimensions& dimensions_;
  SweepRunner& runner_;
  const ResultsFile& results_;
  std::ostream& out_;
  std::vector<Candidate> all_;         // LibTorch's defaults come first
  std::map<std::string, int> rounds_;  // by name
};

}  // namespace

absl::StatusOr<TuningResult> TuneSettings(const Spec& spec,
                                          const Dimensions& dimensions,
                                          SweepRunner& runner,
                                          const ResultsFile& results,
                                          std::ostream& out) {
  return Tuning(spec, dimensions, runner, results, out).Find();
}

}  // namespace hvdlite::scaling_sweep
