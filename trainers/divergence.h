// Trainings whose loss is no number any more.
#pragma once

#include <stdexcept>
#include <string>

namespace hvdlite::trainers {

// The training diverged; all ranks throw it together. Programs end with exit
// code 1.
class DivergenceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws DivergenceError if `loss`, which is the same on all ranks, is infinite
// or not a number. `what` completes "the ... is not finite".
void RequireFinite(double loss, const std::string& what);

}  // namespace hvdlite::trainers
