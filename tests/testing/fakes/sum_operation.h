// Sums of floats for tests of coordinators.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "negotiation/engine/coordinator.h"

namespace hvdlite::testing {

inline absl::Span<std::byte> BytesOf(std::vector<float>& values) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                        values.size() * sizeof(float));
}

// An in-place sum over `values`, which must outlive the operation.
inline negotiation::Operation Sum(const std::string& name,
                                  std::vector<float>& values) {
  negotiation::Operation operation;
  operation.request.name = name;
  operation.request.tensors = {
      {.shape = {static_cast<int64_t>(values.size())}}};
  operation.inputs = {BytesOf(values)};
  operation.outputs = {BytesOf(values)};
  return operation;
}

inline absl::Status SubmitAndWait(negotiation::Coordinator& coordinator,
                                  negotiation::Operation operation) {
  auto completion = coordinator.Submit(std::move(operation));
  if (!completion.ok()) return completion.status();
  return coordinator.Wait(**completion);
}

}  // namespace hvdlite::testing
