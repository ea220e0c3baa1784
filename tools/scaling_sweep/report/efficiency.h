// Parallel efficiency.
#pragma once

#include <string>

#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Of the time T1 that N = 1 takes and the time TN of `n`.

// For the same work: T1 / (N TN).
double StrongEfficiency(double t1, double n, double tn);
// For work that grows with N: T1 / TN.
double WeakEfficiency(double t1, double tn);

// The same from speeds: items a second of `n`, and of the smallest measured,
// `base_n`, which need not be 1: in both kinds of scaling what `n` does, by
// what n / base_n times the smallest would.
double EfficiencyOfSpeeds(Scaling scaling, double base_n, double base_speed,
                          double n, double speed);

// "strong: T1/(N*TN)" or "weak: T1/TN".
std::string EfficiencyLabel(Scaling scaling);

// What studies call the strong efficiency of N nodes, too.
std::string PerNodeNote(const std::string& items);

}  // namespace hvdlite::scaling_sweep
