// GradientSet: the gradients of a step, in the order in which backward makes
// them; and Workload: what every rank submits in a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::scale_sim {

struct GradientSet {
  std::string name;
  std::vector<int64_t> bytes;
  // Per gradient: after which part of the backward pass it is ready; ascends,
  // the last at 1.
  std::vector<double> ready_fraction;

  int64_t total_bytes() const;
};

// float32 gradients of ResNet50, ready when the multiply-adds of their layer
// and of the layers behind it are done.
GradientSet Resnet50GradientSet(int64_t classes);

// One line per gradient: its elements (float32), then, after white space, what
// computing it takes relative to the others; without, all take the same. Empty
// lines, and what follows a '#', are left out.
absl::StatusOr<GradientSet> ParseGradientSet(absl::string_view text);

// "resnet50-cifar10", "resnet50-imagenet", or the path of a file as above.
absl::StatusOr<GradientSet> GradientSetNamed(const std::string& name);

// A rank that has submitted everything waits for all of it, the last first, as
// an optimizer's step() does.
struct Workload {
  std::string name;
  // In the order in which they get ready.
  std::vector<negotiation::Request> requests;
  // Per request: after which part of the backward pass it is ready; ascending,
  // the last at 1.
  std::vector<double> ready_fraction;
};

// One allreduce of one float, which the rank waits for as soon as it has
// submitted it: a synchronous call.
Workload OneTensor();

// The first `tensors` (1 to 161) of ResNet50's gradients, in backward's order,
// ready at equal intervals.
Workload Training(int tensors);

// A training with these gradients.
Workload TrainingWith(const GradientSet& gradients);

}  // namespace hvdlite::scale_sim
