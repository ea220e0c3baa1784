#include "tools/scaling_sweep/report/efficiency.h"

#include "absl/strings/str_cat.h"

namespace hvdlite::scaling_sweep {

double StrongEfficiency(double t1, double n, double tn) {
  return t1 / (n * tn);
}

double WeakEfficiency(double t1, double tn) { return t1 / tn; }

double EfficiencyOfSpeeds(Scaling scaling, double base_n, double base_speed,
                          double n, double speed) {
  if (scaling == STRONG) {
    return StrongEfficiency(1 / base_speed, n / base_n, 1 / speed);
  }
  // A step of n has n batches.
  return WeakEfficiency(base_n / base_speed, n / speed);
}

std::string EfficiencyLabel(Scaling scaling) {
  return scaling == STRONG ? "strong: T1/(N*TN)" : "weak: T1/TN";
}

std::string PerNodeNote(const std::string& items) {
  return absl::StrCat("An efficiency is also the ", items,
                      " processed at N nodes per node: what each of them does "
                      "in a second, as a "
                      "share of what one node does alone.");
}

}  // namespace hvdlite::scaling_sweep
