// Requests for tests of negotiators.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

inline negotiation::Request Gradient(
    const std::string& name, int64_t elements = 16,
    negotiation::ProcessSetId process_set = 0) {
  negotiation::Request request;
  request.name = name;
  request.process_set = process_set;
  request.tensors = {{.shape = {elements}}};
  request.average = true;
  return request;
}

inline negotiation::Request AddSet(std::vector<int> members,
                                   const std::string& name = "add") {
  negotiation::Request request;
  request.name = name;
  request.collective = negotiation::Collective::kAddProcessSet;
  request.members = std::move(members);
  return request;
}

inline negotiation::Negotiator::Options SmallBuckets() {
  negotiation::Negotiator::Options options;
  options.min_batch_bytes = 1024;
  options.fusion_threshold_bytes = 4096;
  return options;
}

}  // namespace hvdlite::testing
