// GradientSet: the gradients of a step, in the order in which backward makes
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace hvdlite::scale_sim
