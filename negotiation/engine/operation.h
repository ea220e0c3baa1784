// Operation: what an application submits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

using Inputs = absl::InlinedVector<absl::Span<const std::byte>, 1>;
using Outputs = absl::InlinedVector<absl::Span<std::byte>, 1>;

// How many rows arrive: [tensor][member of the process set, in rank order].
using RowsByMember = std::vector<std::vector<int64_t>>;

// One operation on its tensors, which are contiguous bytes.
//
//                  input of a tensor         output of a tensor
//   allreduce      SizeBytes(tensor)         the same; may be the input's
//   memory broadcast      as above; read on the     as above
//                  root alone
//   reducescatter  SizeBytes(tensor)         this member's of EvenRows(rows,
//                                            members) rows
//   allgather,     any number of whole rows  from `allocate`
//   alltoall
//   others         none                      none
struct Operation {
  Request request;
  // This rank has no gradient for it: it contributes the op's neutral
  // element, and gets the result
  // if any rank has one. If none has, the operation ends without a reduction
  // and Completion::absent_everywhere() is true. `inputs` is empty then. Of an
  // allreduce alone.
  bool absent = false;
  // The training step that it belongs to; 0: none. The operation fails on every
  // rank unless all ranks are in the same one.
  uint32_t step = 0;
  Inputs inputs;    // one per tensor
  Outputs outputs;  // one per tensor; empty where `allocate` makes them
  // Of an allgather: how many rows each tensor has. Of an alltoall: how many
  // rows of its tensor go to each member of the process set.
  std::vector<int64_t> rows;
  // Of an allgather or alltoall: called once, as soon as it is known how many
  // rows arrive, on the thread that coordinates; returns the outputs, one per
  // tensor, which take the rows of all members one after the other. Must not
  // block or throw. An error of it breaks the world, since the other ranks
  // cannot be stopped any more.
  std::function<absl::StatusOr<Outputs>(const RowsByMember& rows)> allocate;
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
