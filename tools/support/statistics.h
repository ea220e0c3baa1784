// Arithmetic on samples.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::base {

// The value below which a share `p` of the samples lies, 0 <= p <= 1, linear
// between neighbours as numpy.percentile: Quantile({1, 2, 3, 4}, 0.5) is 2.5.
// Of at least one sample (std::invalid_argument).
double Quantile(std::vector<double> samples, double p);

// Quantile(samples, 0.5).
double Median(std::vector<double> samples);

// 0.975 quantile of Student's t with `degrees` >= 1 degrees of freedom; within
// 0.1 %.
double StudentT975(int64_t degrees);

}  // namespace hvdlite::base
