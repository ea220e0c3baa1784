#include "negotiation/engine/batch_tensors.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"

namespace hvdlite::negotiation {
namespace {

using collective::FusedTensor;
using collective::PartitionedTensor;

// The entry of `dtype`, made if there is none.
template <typename OfType>
OfType& Find(std::vector<OfType>& all, collective::DataType dtype) {
  for (OfType& entry : all) {
    if (entry.dtype == dtype) return entry;
  }
  all.push_back({dtype, {}});
  return all.back();
}

// Calls visit(operation, index of the tensor in it) for every tensor.
template <typename Visit>
void VisitTensors(const Batch& batch, const Visit& visit) {
  for (const SubmittedPtr& pending : batch) {
    const Operation& operation = pending->operation;
    for (size_t i = 0; i < operation.request.tensors.size(); ++i) {
      visit(operation, i);
    }
  }
}

absl::Span<const std::byte> InputOf(const Operation& operation, size_t i) {
  return operation.absent ? absl::Span<const std::byte>() : operation.inputs[i];
}

std::vector<size_t> BytesOf(absl::Span<const int64_t> rows,
                            const TensorSpec& tensor) {
  const int64_t row_bytes = RowBytes(tensor);
  std::vector<size_t> bytes;
  bytes.reserve(rows.size());
  for (const int64_t count : rows) {
    bytes.push_back(static_cast<size_t>(count * row_bytes));
  }
  return bytes;
}

// Has the operation allocate its outputs for `rows`, and adds its tensors with
// the given partitions of the inputs (or none).
absl::Status Allocate(const Operation& operation, const RowsByMember& rows,
                      absl::Span<const int64_t> input_rows,
                      std::vector<PartitionedTensor>& tensors) {
  HVDLITE_ASSIGN_OR_RETURN(const Outputs outputs, operation.allocate(rows));
  const Request& request = operation.request;
  if (outputs.size() != request.tensors.size()) {
    return absl::InternalError(absl::StrCat(
        "'", request.name, "': ", outputs.size(), " outputs were allocated"));
  }
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    tensors.push_back({.input = operation.inputs[i],
                       .output = outputs[i],
                       .input_bytes = BytesOf(input_rows, request.tensors[i]),
                       .output_bytes = BytesOf(rows[i], request.tensors[i])});
  }
  return absl::OkStatus();
}

absl::Span<std::byte> Bytes(std::vector<int64_t>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(int64_t)};
}

size_t CountTensors(const Batch& batch) {
  size_t count = 0;
  VisitTensors(batch, [&](const Operation&, size_t) { ++count; });
  return count;
}

}  // namespace

std::vector<TensorsOfType> ByType(const Batch& batch) {
  std::vector<TensorsOfType> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    Find(all, operation.request.tensors[i].dtype)
        .tensors.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

std::vector<FusedTensor> AllTensors(const Batch& batch) {
  std::vector<FusedTensor> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    all.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

std::vector<PartitionsOfType> ScatteredByType(const Batch& batch, int members) {
  std::vector<PartitionsOfType> all;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    const TensorSpec& spec = operation.request.tensors[i];
    Find(all, spec.dtype)
        .tensors.push_back(
            {.input = operation.inputs[i],
             .output = operation.outputs[i],
             .input_bytes = BytesOf(
                 collective::EvenRows(spec.shape.front(), members), spec),
             .output_bytes = {}});
  });
  return all;
}

absl::StatusOr<std::vector<PartitionedTensor>> GatheredTensors(
    collective::Communicator& communicator, const Batch& batch) {
  // rows[member * count + tensor]
  const size_t count = CountTensors(batch);
  const auto members = static_cast<size_t>(communicator.size());
  std::vector<int64_t> rows(members * count);
  size_t next = static_cast<size_t>(communicator.rank()) * count;
  VisitTensors(batch, [&](const Operation& operation, size_t i) {
    rows[next++] = operation.rows[i];
  });
  HVDLITE_RETURN_IF_ERROR(communicator.Allgather(
      Bytes(rows), std::vector<size_t>(members, count * sizeof(int64_t))));

  std::vector<PartitionedTensor> tensors;
  size_t tensor = 0;
  for (const SubmittedPtr& pending : batch) {
    const Operation& operation = pending->operation;
    RowsByMember by_member(operation.request.tensors.size());
    for (std::vector<int64_t>& of_tensor : by_member) {
      for (size_t member = 0; member < members; ++member) {
        of_tensor.push_back(rows[member * count + tensor]);
      }
      ++tensor;
    }
    HVDLITE_RETURN_IF_ERROR(Allocate(operation, by_member, {}, tensors));
  }
  return tensors;
}

absl::StatusOr<std::vector<PartitionedTensor>> ExchangedTensors(
    collective::Communicator& communicator, const Batch& batch) {
  // sent[member * count + operation]
  const size_t count = batch.size();
  const auto members = static_cast<size_t>(communicator.size());
  std::vector<int64_t> sent(members * count);
  std::vector<int64_t> received(members * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t member = 0; member < members; ++member) {
      sent[member * count + i] = batch[i]->operation.rows[member];
    }
  }
  const std::vector<size_t> parts(members, count * sizeof(int64_t));
  HVDLITE_RETURN_IF_ERROR(
      communicator.Alltoall(Bytes(sent), parts, Bytes(received), parts));

  std::vector<PartitionedTensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    RowsByMember by_member(1);
    for (size_t member = 0; member < members; ++member) {
      by_member.front().push_back(received[member * count + i]);
    }
    HVDLITE_RETURN_IF_ERROR(Allocate(batch[i]->operation, by_member,
                                     batch[i]->operation.rows, tensors));
  }
  return tensors;
}

}  // namespace hvdlite::negotiation
