// The part of a rank that has joined in an operation of the others.
#pragma once

#include "negotiation/engine/pending_operation.h"

namespace hvdlite::negotiation {

// An operation that contributes nothing (the op's neutral element; no rows) and
// whose results nobody reads. Its memory goes with it. Nobody completes it. Not
// for an alltoall or a reducescatter.
PendingPtr MakeNeutralOperation(Request request);

}  // namespace hvdlite::negotiation
