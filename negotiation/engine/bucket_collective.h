// RunCollective carries a bucket of operations through the data plane.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/operation.h"

namespace hvdlite::negotiation {

// The operations of a bucket, in the same order on all ranks. They belong to
// one process set of this rank, and differ only in names and tensors.
using Bucket = std::vector<SubmittedPtr>;

// The size of the tensors that this rank contributes.
int64_t BytesIn(const Bucket& bucket);

// The progress of a bucket, which may take several calls of the data plane.
struct BucketProgress {
  int64_t bytes = 0;       // moved by the calls that have returned
  int64_t call_bytes = 0;  // moved in all by the running call
  double share = 0;        // of call_bytes, so far

  int64_t moved() const {
    return bytes +
           static_cast<int64_t>(share * static_cast<double>(call_bytes));
  }
};

struct BucketSetting {
  collective::FusionResources resources;  // with the process set's communicator
  const collective::FusionHooks& hooks;
  int root = 0;     // for a broadcast; within the process set
  int divisor = 1;  // for an average
};

// Reduces, sends or gathers the tensors of each data type together, and
// allocates the outputs of an allgather or alltoall in between. Returns the
// first error of the data plane or of an allocation; then outputs are
// unspecified.
absl::Status RunCollective(const Bucket& bucket, const BucketSetting& setting,
                           BucketProgress& done);

}  // namespace hvdlite::negotiation
