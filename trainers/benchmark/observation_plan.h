// How often a benchmark is timed.
#pragma once

#include <cstdint>

namespace hvdlite::trainers {

// `repeat` observations, each the time of `number` batches, as in Mila's
// training benchmarks (github.com/mila-iqia/training), whose defaults these
// are.
struct ObservationPlan {
  int64_t repeat = 100;
  int64_t number = 10;
  int64_t skip = 10;       // first observations left out, fewer than `repeat`
  int64_t batch_size = 1;  // items of a batch, of all ranks that train together

  // Of one observation.
  int64_t items() const { return number * batch_size; }
};

// Throws InputError that names the flag unless `skip` observations can be left
// out and the other numbers are positive.
void RequireValid(const ObservationPlan& plan);

}  // namespace hvdlite::trainers
