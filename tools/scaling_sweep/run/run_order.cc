#include "tools/scaling_sweep/run/run_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace hvdlite::scaling_sweep {
namespace {

// Fisher and Yates' shuffle: the same on every platform, unlike std::shuffle.
void Shuffle(std::vector<size_t>& values, std::mt19937_64& random) {
  for (size_t last = values.size(); last > 1; --last) {
    std::swap(values[last - 1], values[random() % last]);
  }
}

}  // namespace

std::vector<PlannedRun> RunOrder(size_t configurations, int repeats,
                                 Order order, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PlannedRun> runs;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::vector<size_t> indices(configurations);
    std::iota(indices.begin(), indices.end(), size_t{0});
    if (order == SHUFFLED) {
      Shuffle(indices, random);
    } else if (repeat % 2 == 1) {
      std::reverse(indices.begin(), indices.end());
    }
    for (const size_t index : indices) runs.push_back({index, repeat});
  }
  return runs;
}

}  // namespace hvdlite::scaling_sweep
