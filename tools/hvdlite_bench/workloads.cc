#include "tools/hvdlite_bench/workloads.h"

#include <stdexcept>

#include "tools/support/resnet50_gradients.h"
#include "tools/support/transformer_gradients.h"

namespace hvdlite::tools {

std::vector<Workload> StandardWorkloads() {
  return {
      {"resnet50", "ResNet50's 161 gradients, 102 MB",
       Resnet50GradientElements(), 1},
      {"transformer", "146 gradients of a 12-layer transformer, 340 MB",
       TransformerGradientElements(), 1},
      {"1000_of_1_kb", "1000 tensors of 1 KB",
       std::vector<int64_t>(1000, 1024 / sizeof(float)), 1},
      {"one_4_bytes", "one 4-byte tensor", {1}, 20},
      {"tiny", "three small tensors, for tests", {5, 1000, 300000}, 1},
  };
}

Workload WorkloadNamed(const std::string& name) {
  std::string names;
  for (Workload& workload : StandardWorkloads()) {
    if (workload.name == name) return workload;
    names += " " + workload.name;
  }
  throw std::invalid_argument("no workload is called '" + name +
                              "'; there are:" + names);
}

}  // namespace hvdlite::tools
