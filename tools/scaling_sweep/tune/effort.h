// Effort: how many runs fit into the time of a search.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

struct Effort {
  int worlds = 0;  // besides the defaults
  int world_rounds = 0;
  int candidates = 0;  // settings in the first round
  int first_rounds = 1;
  int compared = 2;  // candidates in a round of the last comparison
  int final_rounds = 0;

  // The maximum number of runs.
  int64_t runs() const;
};

// Rounds of the best and the defaults; fewer rounds give no interval.
inline constexpr int kFewestFinalRounds = 3;

// The maximum effort that the user wants.
struct Wishes {
  int worlds = 0;
  int candidates = 24;
  int first_rounds = 1;  // minimum
  int final_rounds = 8;
};

// Returns the wishes of the spec, with defaults for a search of `minutes`.
Wishes WishesOf(const Spec& spec, int worlds, double minutes);

// Returns the effort that fits into `seconds` if a run of the defaults takes
// `run_seconds`. A fifth of the time is reserved for disturbed and slow runs.
// FailedPrecondition with a remedy if the time is too short for a comparison.
absl::StatusOr<Effort> EffortFor(const Wishes& wishes, double run_seconds,
                                 double seconds);

}  // namespace hvdlite::scaling_sweep
