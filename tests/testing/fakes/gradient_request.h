// Requests of gradients, for tests of negotiators.
#pragma once

#include <cstdint>
#include <string>

#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

inline negotiation::Request Gradient(const std::string& name,
                                     int64_t elements = 16) {
  negotiation::Request request;
  request.name = name;
  request.tensors = {{.shape = {elements}}};
  request.average = true;
  return request;
}

inline negotiation::Negotiator::Options SmallBatches() {
  negotiation::Negotiator::Options options;
  options.tree_arity = 2;
  options.min_batch_bytes = 1024;
  options.fusion_threshold_bytes = 4096;
  return options;
}

}  // namespace hvdlite::testing
