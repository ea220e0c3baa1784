// The downhill simplex method of Nelder and Mead.
#pragma once

#include <functional>
#include <vector>

namespace hvdlite::scale_sim {

struct Minimum {
  std::vector<double> point;
  double value = 0;
};

// A local minimum of `function` near `start` (one entry or more), found without
// derivatives (Nelder and Mead, "A Simplex Method for Function Minimization",
// 1965; standard coefficients). `edge`: of the first simplex, in each
// direction. It ends when the simplex has values that differ by less than
// `tolerance`, or after `iterations`. Deterministic.
Minimum NelderMead(
    const std::function<double(const std::vector<double>&)>& function,
    const std::vector<double>& start, double edge, double tolerance,
    int iterations);

}  // namespace hvdlite::scale_sim
