// Workload: the operations that every rank submits in a step.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::scale_sim {

// A rank that has submitted all its operations waits for them, the last one
// first, like an optimizer's step().
struct Workload {
  std::string name;
  // In the order in which they become ready.
  std::vector<negotiation::Request> requests;
  // Per request: the part of the backward pass after which it is ready. The
  // values ascend; the last is 1.
  std::vector<double> ready_fraction;
};

// A synchronous allreduce of one float: the rank waits for it after submitting.
Workload OneTensor();

// The first `tensors` (1 to 161) of ResNet50's gradients, in backward's order,
// ready at equal intervals.
Workload Training(int tensors);

// Parses one line per gradient, in backward's order: its elements (float32)
// and, optionally after white space, its computing time relative to the others
// (default: 1). Empty lines, and text after a '#', are ignored.
absl::StatusOr<Workload> ParseGradients(absl::string_view text);

// The same for a file. Errors name the file.
absl::StatusOr<Workload> ReadGradients(const std::string& path);

}  // namespace hvdlite::scale_sim
