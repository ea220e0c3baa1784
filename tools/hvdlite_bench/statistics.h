// Arithmetic on samples.
#pragma once

#include <cstdint>
#include <vector>

namespace hvdlite::tools {

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  // 95 % confidence interval of the mean (Student's t); infinite for a single
  // sample, which tells nothing about its spread.
  double low = 0;
  double high = 0;
  int64_t samples = 0;
};

// Of at least one sample (std::invalid_argument).
Summary Summarise(const std::vector<double>& samples);

// The value below which a share `p` of the samples lies, 0 <= p <= 1, linear
// between neighbours: Quantile({1, 2, 3, 4}, 0.5) is 2.5. Of at least one
// sample (std::invalid_argument).
double Quantile(std::vector<double> samples, double p);

// 0.975 quantile of Student's t with `degrees` >= 1 degrees of freedom; within
// 0.1 %.
double StudentT975(int64_t degrees);

// Bytes that each rank must at least send and receive in an allreduce, divided
// by the size of its buffer: 2 (n - 1) / n. Time per byte times this tells how
// busy the links are, whatever the number of ranks.
double AllreduceBusFactor(int ranks);

}  // namespace hvdlite::tools
