// Communicators that add in the order of the ranks.
#pragma once

#include <memory>

#include "collective/communicator.h"

namespace hvdlite::collective {

// Wraps `inner`: reductions combine every element as ((r0 op r1) op r2) op ...,
// so that results depend neither on where in a buffer an element lies, nor on
// the buffer's size, nor on timing, as they may in a library that chooses among
// algorithms. 16-bit floats are then rounded once, at the end. For types whose
// reductions do not depend on the order (integers, bools), and all other calls,
// `inner` is called as is.
//
// A reduction costs an Alltoall and (if all are to get the result) an Allgather
// of `inner`, which move as many bytes as its Allreduce at least does, and
// memory for one more buffer. Subgroups are of the same kind.
std::unique_ptr<Communicator> CreateRankOrderCommunicator(
    std::unique_ptr<Communicator> inner);

}  // namespace hvdlite::collective
