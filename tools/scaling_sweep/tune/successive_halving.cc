#include "tools/scaling_sweep/tune/successive_halving.h"

#include <algorithm>

namespace hvdlite::scaling_sweep {

int RepeatsAfterRound(int first_repeats, int round) {
  return first_repeats << std::min(round, 16);
}

std::vector<size_t> BetterHalf(
    const std::vector<std::optional<double>>& speeds) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < speeds.size(); ++i) {
    if (speeds[i]) indices.push_back(i);
  }
  std::stable_sort(indices.begin(), indices.end(),
                   [&](size_t a, size_t b) { return *speeds[a] > *speeds[b]; });
  indices.resize((indices.size() + 1) / 2);
  return indices;
}

}  // namespace hvdlite::scaling_sweep
