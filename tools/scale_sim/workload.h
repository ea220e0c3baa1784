// Workload: what every rank submits in a step.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::scale_sim {

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

// One line per gradient, in backward's order: its elements (float32), then,
// after white space, what computing it takes relative to the others; without,
// all take the same. Empty lines, and what follows a '#', are left out.
absl::StatusOr<Workload> ParseGradients(absl::string_view text);

// The same from a file, which errors name.
absl::StatusOr<Workload> ReadGradients(const std::string& path);

}  // namespace hvdlite::scale_sim
