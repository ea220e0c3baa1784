#include "tools/scaling_sweep/tune/effort.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "support/progress_line.h"
#include "support/text_table.h"
#include "tools/scaling_sweep/tune/race.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr double kMinutes = 15;  // for the default number of candidates
// The defaults as warm-up; they and one world; both in the last comparison.
constexpr int64_t kFewestRuns = 3 + 2 * kFewestFinalRounds;
constexpr double kShareOfPlan = 0.8;

}  // namespace

int64_t Effort::runs() const {
  return 1 + int64_t{worlds + 1} * world_rounds +
         RunsOfRace(candidates, first_rounds) +
         int64_t{compared} * final_rounds;
}

Wishes WishesOf(const Spec& spec, int worlds, double minutes) {
  Wishes wishes = {.worlds = worlds};
  const Tune& tune = spec.tune();
  if (tune.candidates() > 0) {
    wishes.candidates = tune.candidates();
  } else if (minutes > kMinutes) {
    wishes.candidates =
        static_cast<int>(wishes.candidates * std::min(minutes / kMinutes, 1e3));
  }
  if (tune.first_repeats() > 0) wishes.first_rounds = tune.first_repeats();
  if (tune.final_repeats() > 0) wishes.final_rounds = tune.final_repeats();
  return wishes;
}

absl::StatusOr<Effort> EffortFor(const Wishes& wishes, double run_seconds,
                                 double seconds) {
  const double fits = std::min(seconds / run_seconds, 1e9);
  if (fits < kFewestRuns) {
    const double wanted = kFewestRuns * run_seconds;
    return absl::FailedPreconditionError(absl::StrCat(
        "a run of the defaults takes ", support::FormatDuration(run_seconds),
        ", and a search needs at least ", kFewestRuns,
        " runs: ", support::FormatDuration(wanted), ", but only ",
        support::FormatDuration(seconds), " are left; use --minutes ",
        std::ceil(wanted / kShareOfPlan / 60),
        " or more, or make the program do less (a run of a minute is "
        "enough)"));
  }
  const int64_t runs =
      std::max(kFewestRuns, static_cast<int64_t>(fits * kShareOfPlan));
  const auto cut = [](int64_t value, int64_t least, int64_t most) {
    return static_cast<int>(std::max(least, std::min(value, most)));
  };
  Effort effort;
  effort.final_rounds =
      std::min(wishes.final_rounds,
               cut(runs / 8, kFewestFinalRounds, wishes.final_rounds));
  constexpr int kMostCompared = 12;
  effort.compared =
      cut(runs * 35 / 100 / effort.final_rounds, 2, kMostCompared);
  const int64_t rest =
      runs - 1 - int64_t{effort.compared} * effort.final_rounds;
  effort.worlds = cut(rest * 2 / 3, 1, wishes.worlds);
  effort.world_rounds = (effort.worlds + 1) * 8 <= rest ? 2 : 1;
  const int64_t left = rest - (effort.worlds + 1) * effort.world_rounds;
  for (effort.candidates = wishes.candidates; effort.candidates > 0;
       --effort.candidates) {
    if (RunsOfRace(effort.candidates, wishes.first_rounds) <= left) break;
  }
  effort.first_rounds = wishes.first_rounds;
  while (effort.first_rounds < kFewestFinalRounds && effort.candidates > 0 &&
         RunsOfRace(effort.candidates, effort.first_rounds + 1) <= left) {
    ++effort.first_rounds;
  }
  return effort;
}

}  // namespace hvdlite::scaling_sweep
