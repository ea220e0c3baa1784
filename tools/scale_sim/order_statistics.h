// How much later the last of many ranks is than any one of them.
#pragma once

#include <cmath>

namespace hvdlite::scale_sim {

// The expected maximum of `draws` (1 or more) independent draws from an
// exponential distribution of mean 1: the harmonic number 1 + 1/2 + ... +
// 1/draws (Renyi, "On the theory of order statistics", 1953). It grows by ln 2
// each time that the number doubles.
inline double ExpectedExponentialMaximum(int draws) {
  double sum = 0;
  for (int i = draws; i >= 1; --i) sum += 1.0 / i;
  return sum;
}

}  // namespace hvdlite::scale_sim
