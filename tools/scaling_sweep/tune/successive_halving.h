// Successive halving (Jamieson and Talwalkar, "Non-stochastic Best Arm
// Identification and Hyperparameter Optimization", 2016): many candidates on a
// small budget, then half of them on twice the budget, until one is left.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace hvdlite::scaling_sweep {

// How often each candidate that is left has been run after round `round`, from
// 0: first, 2 first, 4 first, ...
int RepeatsAfterRound(int first_repeats, int round);

// Indices of the better half (rounded up) of those that did not fail, the
// fastest first. `speeds`: items/s; nullopt: it failed. Of equal ones the
// earlier is better.
std::vector<size_t> BetterHalf(
    const std::vector<std::optional<double>>& speeds);

}  // namespace hvdlite::scaling_sweep
