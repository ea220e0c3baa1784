// PendingOperation: an operation from its submission to its completion.
#pragma once

#include <cstdint>
#include <memory>

#include "negotiation/completion.h"
#include "negotiation/operation.h"

namespace hvdlite::negotiation {

struct PendingOperation {
  Operation operation;
  std::shared_ptr<Completion> completion;
  int64_t submitted_ns = 0;
  int lane = 0;  // in the timeline; 0: not recorded
  bool marked_urgent = false;
};

using PendingPtr = std::shared_ptr<PendingOperation>;

}  // namespace hvdlite::negotiation
