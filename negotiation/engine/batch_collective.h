// RunCollective: carries a batch of operations through the data plane.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/operation.h"

namespace hvdlite::negotiation {

// The operations of a batch, in one order on all ranks; of one process set that
// this rank is in, and alike but for names and tensors.
using Batch = std::vector<SubmittedPtr>;

// Of the tensors that this rank hands in.
int64_t BytesIn(const Batch& batch);

// How far a batch is, which may take several calls of the data plane.
struct BatchProgress {
  int64_t bytes = 0;       // moved by the calls that have returned
  int64_t call_bytes = 0;  // that the one that is running moves in all
  double share = 0;        // of those

  int64_t moved() const {
    return bytes +
           static_cast<int64_t>(share * static_cast<double>(call_bytes));
  }
};

struct BatchSetting {
  collective::FusionResources resources;  // with the process set's communicator
  const collective::FusionHooks& hooks;
  int root = 0;     // of a broadcast, within the process set
  int divisor = 1;  // of an average
};

// Reduces, sends or gathers the tensors of each data type together; outputs of
// an allgather or alltoall are allocated on the way. Returns the first error,
// of the data plane or of an allocation, after which outputs are unspecified.
absl::Status RunCollective(const Batch& batch, const BatchSetting& setting,
                           BatchProgress& done);

}  // namespace hvdlite::negotiation
