#include "negotiation/engine/bucket_collective.h"

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace hvdlite::negotiation {
namespace {

collective::Reduction ReductionOf(const Request& request,
                                  collective::DataType dtype, int divisor) {
  return {.dtype = dtype,
          .op = request.op,
          .prescale = request.prescale_factor,
          .postscale = request.postscale_factor,
          .divisor = request.average ? divisor : 1,
          .compression = request.compression};
}

using collective::FusedTensor;
using collective::PartitionedTensor;

// Tensors of one data type, which can be reduced together.
template <typename Tensor>
struct OfType {
  collective::DataType dtype;
  absl::InlinedVector<Tensor, 4> tensors;
};

// Usually there is one type.
template <typename Tensor>
using ByDataType = absl::InlinedVector<OfType<Tensor>, 1>;

// Like BytesIn for a bucket.
int64_t BytesIn(absl::Span<const FusedTensor> tensors) {
  int64_t bytes = 0;
  for (const FusedTensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.output.size());
  }
  return bytes;
}

int64_t BytesIn(absl::Span<const PartitionedTensor> tensors) {
  int64_t bytes = 0;
  for (const PartitionedTensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.input.size());
  }
  return bytes;
}

// Returns the entry of `dtype`; makes it if there is none.
template <typename Tensor>
OfType<Tensor>& Find(ByDataType<Tensor>& all, collective::DataType dtype) {
  for (OfType<Tensor>& entry : all) {
    if (entry.dtype == dtype) return entry;
  }
  OfType<Tensor>& entry = all.emplace_back();
  entry.dtype = dtype;
  return entry;
}

// Calls visit(operation, index of the tensor in it) for every tensor.
template <typename Visit>
void VisitTensors(const Bucket& bucket, const Visit& visit) {
  for (const SubmittedPtr& pending : bucket) {
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

// Lets the operation allocate its outputs for `rows`, and adds its tensors with
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

// Returns all tensors of the bucket by data type, each in the bucket's order.
ByDataType<FusedTensor> ByType(const Bucket& bucket) {
  ByDataType<FusedTensor> all;
  VisitTensors(bucket, [&](const Operation& operation, size_t i) {
    Find(all, operation.request.tensors[i].dtype)
        .tensors.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

std::vector<FusedTensor> AllTensors(const Bucket& bucket) {
  std::vector<FusedTensor> all;
  VisitTensors(bucket, [&](const Operation& operation, size_t i) {
    all.push_back({InputOf(operation, i), operation.outputs[i]});
  });
  return all;
}

// Like ByType, for a reducescatter over `members` ranks.
ByDataType<PartitionedTensor> ScatteredByType(const Bucket& bucket,
                                              int members) {
  ByDataType<PartitionedTensor> all;
  VisitTensors(bucket, [&](const Operation& operation, size_t i) {
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

// Like ByType, for an allgather or alltoall. Informs the other ranks how many
// rows each gets, and lets the operations allocate their outputs. Collective.
// Errors of the communicator or of an allocation.
absl::StatusOr<std::vector<PartitionedTensor>> TensorsOfRows(
    collective::Communicator& communicator, const Bucket& bucket) {
  const bool gathers =
      bucket.front()->operation.request.collective == Collective::kAllgather;
  size_t count = 0;
  VisitTensors(bucket, [&](const Operation&, size_t) { ++count; });
  const auto members = static_cast<size_t>(communicator.size());
  // Index: arriving[member * count + tensor].
  std::vector<int64_t> arriving(members * count);
  const std::vector<size_t> parts(members, count * sizeof(int64_t));
  if (gathers) {
    size_t next = static_cast<size_t>(communicator.rank()) * count;
    VisitTensors(bucket, [&](const Operation& operation, size_t i) {
      arriving[next++] = operation.rows[i];
    });
    HVDLITE_RETURN_IF_ERROR(communicator.Allgather(Bytes(arriving), parts));
  } else {
    std::vector<int64_t> leaving(members * count);
    size_t tensor = 0;
    VisitTensors(bucket, [&](const Operation& operation, size_t) {
      for (size_t member = 0; member < members; ++member) {
        leaving[member * count + tensor] = operation.rows[member];
      }
      ++tensor;
    });
    HVDLITE_RETURN_IF_ERROR(
        communicator.Alltoall(Bytes(leaving), parts, Bytes(arriving), parts));
  }

  std::vector<PartitionedTensor> tensors;
  size_t tensor = 0;
  for (const SubmittedPtr& pending : bucket) {
    const Operation& operation = pending->operation;
    RowsByMember rows(operation.request.tensors.size());
    for (std::vector<int64_t>& of_tensor : rows) {
      for (size_t member = 0; member < members; ++member) {
        of_tensor.push_back(arriving[member * count + tensor]);
      }
      ++tensor;
    }
    HVDLITE_RETURN_IF_ERROR(Allocate(
        operation, rows, gathers ? absl::Span<const int64_t>() : operation.rows,
        tensors));
  }
  return tensors;
}

}  // namespace

int64_t BytesIn(const Bucket& bucket) {
  int64_t bytes = 0;
  for (const auto& submitted : bucket) bytes += submitted->operation.bytes();
  return bytes;
}

absl::Status RunCollective(const Bucket& bucket, const BucketSetting& setting,
                           BucketProgress& done) {
  const Request& request = bucket.front()->operation.request;
  collective::Communicator& communicator = setting.resources.communicator;
  switch (request.collective) {
    case Collective::kBarrier:
      return absl::OkStatus();
    case Collective::kAllreduce:
    case Collective::kAdasum:
      for (const auto& group : ByType(bucket)) {
        done.call_bytes = BytesIn(group.tensors);
        const auto reduce = request.collective == Collective::kAdasum
                                ? collective::FusedAdasum
                                : collective::FusedAllreduce;
        HVDLITE_RETURN_IF_ERROR(
            reduce(setting.resources,
                   ReductionOf(request, group.dtype, setting.divisor),
                   group.tensors, setting.hooks));
        done.bytes += done.call_bytes;
        done.share = 0;
      }
      return absl::OkStatus();
    case Collective::kBroadcast:
      return FusedBroadcast(setting.resources, setting.root, AllTensors(bucket),
                            setting.hooks);
    case Collective::kReducescatter:
      for (const auto& group : ScatteredByType(bucket, communicator.size())) {
        done.call_bytes = BytesIn(group.tensors);
        HVDLITE_RETURN_IF_ERROR(FusedReduceScatter(
            setting.resources,
            ReductionOf(request, group.dtype, setting.divisor), group.tensors,
            setting.hooks));
        done.bytes += done.call_bytes;
        done.share = 0;
      }
      return absl::OkStatus();
    case Collective::kAllgather:
    case Collective::kAlltoall: {
      HVDLITE_ASSIGN_OR_RETURN(const auto tensors,
                               TensorsOfRows(communicator, bucket));
      const auto exchange = request.collective == Collective::kAllgather
                                ? collective::FusedAllgather
                                : collective::FusedAlltoall;
      return exchange(setting.resources, tensors, setting.hooks);
    }
    case Collective::kAddProcessSet:
    case Collective::kRemoveProcessSet:
    case Collective::kJoin:
      break;
  }
  return absl::InternalError(absl::StrCat("a bucket of operations of kind ",
                                          NameOf(request.collective)));
}

}  // namespace hvdlite::negotiation
