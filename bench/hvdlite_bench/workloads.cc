#include "bench/hvdlite_bench/workloads.h"

#include <stdexcept>

#include "support/gradient_sizes.h"

namespace hvdlite::tools {
namespace {

// A prime, so that no power of two is a multiple of it.
constexpr int64_t kPeriod = 8191;
// The shift between the inputs of two ranks.
constexpr int64_t kShift = 1009;

}  // namespace

std::vector<Workload> StandardWorkloads() {
  return {
      {"resnet50", "ResNet50's 161 gradients, 102 MB",
       support::Resnet50GradientElements(), 1},
      {"transformer", "146 gradients of a 12-layer transformer, 340 MB",
       support::TransformerGradientElements(), 1},
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
  throw std::invalid_argument("unknown workload '" + name +
                              "'; known workloads:" + names);
}

TestValues::TestValues(int rank, int ranks)
    : inputs_(kPeriod, 0), sums_(kPeriod, 0) {
  for (int64_t i = 0; i < kPeriod; ++i) {
    inputs_[i] = static_cast<float>((i + rank * kShift) % kPeriod);
    for (int64_t other = 0; other < ranks; ++other) {
      sums_[i] += static_cast<float>((i + other * kShift) % kPeriod);
    }
  }
}

void TestValues::Fill(absl::Span<float> data, int64_t begin) const {
  int64_t at = begin % kPeriod;
  for (float& value : data) {
    value = inputs_[at];
    if (++at == kPeriod) at = 0;
  }
}

int64_t TestValues::CountWrong(absl::Span<const float> data,
                               int64_t begin) const {
  int64_t wrong = 0;
  int64_t at = begin % kPeriod;
  for (const float value : data) {
    if (value != sums_[at]) ++wrong;
    if (++at == kPeriod) at = 0;
  }
  return wrong;
}

}  // namespace hvdlite::tools
