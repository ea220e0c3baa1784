// Lists of gradients as training reduces them in every step, and test values
// that reveal wrong results of an allreduce.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::tools {

// Float32 tensors that are reduced together repeatedly.
struct Workload {
  std::string name;  // for flags, tensor names and JSON
  std::string description;
  std::vector<int64_t> elements;  // of each tensor, in backward's order
  int repeats = 1;                // runs per sample, which is their mean
};

// The workloads are resnet50, transformer, 1000_of_1_kb, one_4_bytes and tiny,
// which is for tests.
std::vector<Workload> StandardWorkloads();

// Throws a std::invalid_argument that lists the known names.
Workload WorkloadNamed(const std::string& name);

// Inputs that differ by rank and by position. Their period divides no size of a
// chunk or slice. So an element that was lost, added twice or misplaced gives
// another sum. Sums are exact in float32, in any order, up to 2048 ranks.
class TestValues {
 public:
  TestValues(int rank, int ranks);

  // Writes this rank's inputs; `data` begins at position `begin`.
  void Fill(absl::Span<float> data, int64_t begin = 0) const;

  // Returns how many elements of `data` differ from the sum over the ranks.
  int64_t CountWrong(absl::Span<const float> data, int64_t begin = 0) const;

 private:
  std::vector<float> inputs_;
  std::vector<float> sums_;
};

}  // namespace hvdlite::tools
