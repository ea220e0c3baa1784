// What a benchmark tells of its samples.
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

// Bytes that each rank must at least send and receive in an allreduce, divided
// by the size of its buffer: 2 (n - 1) / n. Time per byte times this tells how
// busy the links are, whatever the number of ranks.
double AllreduceBusFactor(int ranks);

}  // namespace hvdlite::tools
