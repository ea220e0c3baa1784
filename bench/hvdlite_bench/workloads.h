// Lists of gradients that training reduces in every step, and values that show
// whether an allreduce went wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::tools {

// Float32 tensors that are reduced together, again and again.
struct Workload {
  std::string name;  // word for flags, tensor names and JSON
  std::string description;
  std::vector<int64_t> elements;  // of each tensor, in backward's order
  int repeats = 1;                // runs whose mean is a sample
};

// resnet50, transformer, 1000_of_1_kb, one_4_bytes, tiny. The last one is for
// tests.
std::vector<Workload> StandardWorkloads();

// Throws std::invalid_argument with the names that there are.
Workload WorkloadNamed(const std::string& name);

// Inputs differ by rank and by position, with a period that divides no size of
// a chunk or slice: an element that was lost, taken twice or from elsewhere has
// another sum. Sums are exact in float32, in any order, up to 2048 ranks.
class TestValues {
 public:
  TestValues(int rank, int ranks);

  // Writes this rank's inputs; `data` begins at position `begin`.
  void Fill(absl::Span<float> data, int64_t begin = 0) const;

  // How many elements of `data` are not the sum over the ranks.
  int64_t CountWrong(absl::Span<const float> data, int64_t begin = 0) const;

 private:
  std::vector<float> inputs_;
  std::vector<float> sums_;
};

}  // namespace hvdlite::tools
