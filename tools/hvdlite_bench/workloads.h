// Lists of gradients that training reduces in every step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace hvdlite::tools
