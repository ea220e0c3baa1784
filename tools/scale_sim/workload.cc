#include "tools/scale_sim/workload.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/support/resnet50_gradients.h"

namespace hvdlite::scale_sim {
namespace {

negotiation::Request Average(std::string name, int64_t elements) {
  negotiation::Request request;
  request.name = std::move(name);
  request.tensors = {{.shape = {elements}}};
  request.average = true;
  return request;
}

}  // namespace

Workload OneTensor() {
  return {
      .name = "one", .requests = {Average("tensor", 1)}, .ready_fraction = {1}};
}

Workload Training(int tensors) {
  Workload workload;
  workload.name = "training";
  const std::vector<int64_t> elements = tools::Resnet50GradientElements();
  for (int i = 0; i < tensors; ++i) {
    workload.requests.push_back(
        Average(absl::StrCat("gradient.layer", i, ".weight"), elements.at(i)));
    workload.ready_fraction.push_back((i + 1.0) / tensors);
  }
  return workload;
}

Workload TrainingWith(const GradientSet& gradients) {
  Workload workload;
  workload.name = gradients.name;
  for (size_t i = 0; i < gradients.bytes.size(); ++i) {
    workload.requests.push_back(
        Average(absl::StrCat("gradient.layer", i, ".weight"),
                gradients.bytes[i] / static_cast<int64_t>(sizeof(float))));
  }
  workload.ready_fraction = gradients.ready_fraction;
  return workload;
}

}  // namespace hvdlite::scale_sim
