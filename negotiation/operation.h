// Operation: what an application submits.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "negotiation/request.h"

namespace hvdlite::negotiation {

// One operation on one tensor, as contiguous bytes.
struct Operation {
  Request request;
  // This rank has no gradient for it: it contributes zeros, and gets the result
  // if any rank has one. If none has, the operation ends without a reduction
  // and Completion::absent_everywhere() is true.
  bool absent = false;
  // request.size_bytes() each; input may be output's memory. A broadcast's
  // input is read on the root alone. Empty for a barrier; input is empty where
  // `absent`.
  absl::Span<const std::byte> input;
  absl::Span<std::byte> output;
  // Owner of that memory; released after completion. If the operation was
  // interrupted inside the data plane it is never released: peers or MPI may
  // still write there.
  std::shared_ptr<void> keep_alive;
  // Runs exactly once if Submit returned OK, on the thread that coordinates,
  // under no lock, before waiters are released; must not block or throw, may
  // Submit.
  std::function<void(const absl::Status&)> done;
  // The submitting thread is about to Wait() for it, and so will coordinate
  // itself: the background thread is not woken.
  bool caller_waits = false;
};

}  // namespace hvdlite::negotiation
