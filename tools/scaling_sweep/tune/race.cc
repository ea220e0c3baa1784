#include "tools/scaling_sweep/tune/race.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "support/statistics.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr size_t kFewest = 3;  // rounds needed to estimate the spread

std::vector<double> Logs(const std::vector<double>& ratios) {
  std::vector<double> logs;
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  return logs;
}

}  // namespace

std::optional<bool> WasDisturbed(const Sample& sample) {
  const auto others = sample.machine.find("other programs");
  if (others == sample.machine.end()) return std::nullopt;
  return absl::EndsWith(others->second, ": busy");
}

bool HasFailed(const Rounds& rounds) {
  return std::any_of(rounds.begin(), rounds.end(), [](const auto& round) {
    return !round.second.items_per_second.has_value();
  });
}

PairedRatios RatiosOf(const Rounds& one, const Rounds& other, int first) {
  PairedRatios paired;
  std::vector<double> quiet;
  for (auto round = one.lower_bound(first); round != one.end(); ++round) {
    const Trial& mine = round->second;
    const auto found = other.find(round->first);
    if (found == other.end() || !mine.items_per_second ||
        !found->second.items_per_second) {
      continue;
    }
    const double ratio =
        *mine.items_per_second / *found->second.items_per_second;
    paired.ratios.push_back(ratio);
    if (mine.disturbed || found->second.disturbed) {
      ++paired.disturbed;
    } else {
      quiet.push_back(ratio);
    }
  }
  paired.pairs = static_cast<int>(paired.ratios.size());
  if (quiet.size() >= kFewest) paired.ratios = quiet;
  paired.rests_on_disturbed = paired.ratios.size() > quiet.size();
  return paired;
}

std::optional<double> MeanRatio(const PairedRatios& paired) {
  if (paired.ratios.empty()) return std::nullopt;
  return std::exp(support::Mean(Logs(paired.ratios)));
}

bool IsClearlySlower(const PairedRatios& paired) {
  return paired.ratios.size() >= kFewest &&
         support::Summarise(Logs(paired.ratios)).high < 0;
}

int RoundsOfStage(int stage, int first_rounds) {
  if (stage == 0) return first_rounds;
  return stage == 1 ? 1 : 2;
}

int64_t RunsOfRace(int64_t candidates, int first_rounds) {
  int64_t runs = 0;
  for (int stage = 0; candidates > 0; ++stage) {
    runs += (candidates + 1) * RoundsOfStage(stage, first_rounds);
    if (candidates == 1) break;
    // A combination of the best options joins after the first stage.
    candidates = (candidates + (stage == 0 ? 1 : 0) + 1) / 2;
  }
  return runs;
}

}  // namespace hvdlite::scaling_sweep
