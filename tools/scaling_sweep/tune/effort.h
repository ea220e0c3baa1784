// How much a search runs in the time that it has.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

struct Effort {
  int worlds = 0;  // beside the defaults
  int world_rounds = 0;
  int candidates = 0;  // settings of the first round
  int first_rounds = 1;
  int compared = 2;  // at last, at once
  int final_rounds = 0;

  // Of all of it, at most.
  int64_t runs() const;
};

// Of the best and the defaults: fewer give no interval.
inline constexpr int kFewestFinalRounds = 3;

// What there is to run, and the most that is wanted of it.
struct Wishes {
  int worlds = 0;
  int candidates = 24;
  int first_rounds = 1;  // at least
  int final_rounds = 8;
};

// As the SPEC says, or by default, for a search of `minutes`.
Wishes WishesOf(const Spec& spec, int worlds, double minutes);

// What fits into `seconds`, a fifth of which is left for runs that are
// disturbed or slower than others, where a run of the defaults takes
// `run_seconds`. FailedPrecondition, with what to do, if that is too little for
// any comparison.
absl::StatusOr<Effort> EffortFor(const Wishes& wishes, double run_seconds,
                                 double seconds);

}  // namespace hvdlite::scaling_sweep
