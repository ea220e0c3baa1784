// A batch of operations as the tensors that the data plane takes.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "negotiation/engine/operation.h"

namespace hvdlite::negotiation {

// The operations of a batch, in one order on all ranks.
using Batch = std::vector<SubmittedPtr>;

// Tensors that can be reduced together: those of one data type.
struct TensorsOfType {
  collective::DataType dtype;
  std::vector<collective::FusedTensor> tensors;
};
// All tensors of the batch by data type, each in the batch's order.
std::vector<TensorsOfType> ByType(const Batch& batch);

// All tensors of the batch, whatever their type.
std::vector<collective::FusedTensor> AllTensors(const Batch& batch);

// Those of a reducescatter over `members` ranks.
struct PartitionsOfType {
  collective::DataType dtype;
  std::vector<collective::PartitionedTensor> tensors;
};
std::vector<PartitionsOfType> ScatteredByType(const Batch& batch, int members);

// Tell the other ranks how many rows go where, and have the operations allocate
// what comes. Collective. Errors: the communicator's; of an allocation.
absl::StatusOr<std::vector<collective::PartitionedTensor>> GatheredTensors(
    collective::Communicator& communicator, const Batch& batch);
absl::StatusOr<std::vector<collective::PartitionedTensor>> ExchangedTensors(
    collective::Communicator& communicator, const Batch& batch);

}  // namespace hvdlite::negotiation
