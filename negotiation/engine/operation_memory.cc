#include "negotiation/engine/operation_memory.h"

#include <functional>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "collective/communicator.h"

namespace hvdlite::negotiation {
namespace {

absl::Status Error(const Operation& operation, size_t tensor,
                   absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", operation.request.name, "': tensor ", tensor, " has ", what));
}

absl::Status CheckCount(const Operation& operation, absl::string_view what,
                        size_t count) {
  const size_t expected = operation.request.tensors.size();
  if (count == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", operation.request.name, "' has ", expected,
                   " tensors, but ", count, " ", what));
}

// Inputs and outputs of the request's size, but for a reducescatter's outputs.
absl::Status CheckSizes(const Operation& operation) {
  const Request& request = operation.request;
  const bool whole_output = request.collective != Collective::kReducescatter;
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    const auto bytes = static_cast<size_t>(SizeBytes(request.tensors[i]));
    if (!operation.absent && operation.inputs[i].size() != bytes) {
      return Error(operation, i,
                   absl::StrCat(bytes, " bytes, but an input of ",
                                operation.inputs[i].size()));
    }
    if (whole_output && operation.outputs[i].size() != bytes) {
      return Error(operation, i,
                   absl::StrCat(bytes, " bytes, but an output of ",
                                operation.outputs[i].size()));
    }
  }
  return absl::OkStatus();
}

// Inputs of as many rows as the operation says.
absl::Status CheckRows(const Operation& operation) {
  const Request& request = operation.request;
  const bool gathers = request.collective == Collective::kAllgather;
  if (gathers) {
    if (absl::Status status =
            CheckCount(operation, "numbers of rows", operation.rows.size());
        !status.ok()) {
      return status;
    }
  }
  for (size_t i = 0; i < request.tensors.size(); ++i) {
    const int64_t rows =
        gathers ? operation.rows[i]
                : std::accumulate(operation.rows.begin(), operation.rows.end(),
                                  int64_t{0});
    if (absl::c_any_of(operation.rows, [](int64_t n) { return n < 0; })) {
      return Error(operation, i, "a negative number of rows");
    }
    const int64_t row_bytes = RowBytes(request.tensors[i]);
    if (operation.inputs[i].size() != static_cast<size_t>(rows * row_bytes)) {
      return Error(
          operation, i,
          absl::StrCat(rows, " rows of ", row_bytes, " bytes, but an input of ",
                       operation.inputs[i].size()));
    }
  }
  if (!operation.allocate) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", request.name, "' has no function that allocates its outputs"));
  }
  return absl::OkStatus();
}

bool IsFloat(collective::DataType dtype) {
  return dtype == collective::DataType::kFloat32 ||
         dtype == collective::DataType::kFloat64 ||
         dtype == collective::DataType::kFloat16 ||
         dtype == collective::DataType::kBFloat16;
}

// What the request's kind demands, whatever the memory.
absl::Status CheckKind(const Operation& operation) {
  const Request& request = operation.request;
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", request.name, "' is ", what));
  };
  if (operation.absent && request.collective != Collective::kAllreduce &&
      request.collective != Collective::kAdasum) {
    return error("absent, but not an allreduce");
  }
  if (request.collective == Collective::kAlltoall &&
      request.tensors.size() != 1) {
    return error("an alltoall of other than one tensor");
  }
  if (request.collective == Collective::kRemoveProcessSet &&
      request.removed == 0) {
    return error("to remove the process set of all ranks, which stays");
  }
  if (request.collective == Collective::kAddProcessSet &&
      (request.members.empty() ||
       !absl::c_is_sorted(request.members, std::less_equal<>()))) {
    return error("to add a process set whose ranks do not ascend");
  }
  for (const TensorSpec& tensor : request.tensors) {
    if (request.collective == Collective::kReducescatter &&
        tensor.shape.empty()) {
      return error("a reducescatter of a tensor without dimensions");
    }
    if (request.collective == Collective::kAdasum && !IsFloat(tensor.dtype)) {
      return error("an Adasum of a tensor that is not of a float type");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMemory(const Operation& operation) {
  const Request& request = operation.request;
  if (request.name.empty()) {
    return absl::InvalidArgumentError("an operation needs a name");
  }
  if (!request.refusal.empty()) return absl::OkStatus();
  if (absl::Status status = CheckKind(operation); !status.ok()) return status;
  if (!operation.absent) {
    if (absl::Status status =
            CheckCount(operation, "inputs", operation.inputs.size());
        !status.ok()) {
      return status;
    }
  }
  if (request.rows_differ()) return CheckRows(operation);
  if (absl::Status status =
          CheckCount(operation, "outputs", operation.outputs.size());
      !status.ok()) {
    return status;
  }
  return CheckSizes(operation);
}

absl::Status CheckShare(const Operation& operation, int members, int place) {
  for (size_t i = 0; i < operation.request.tensors.size(); ++i) {
    const TensorSpec& tensor = operation.request.tensors[i];
    const int64_t rows =
        collective::EvenRows(tensor.shape.front(), members)[place];
    const auto bytes = static_cast<size_t>(rows * RowBytes(tensor));
    if (operation.outputs[i].size() != bytes) {
      return Error(
          operation, i,
          absl::StrCat("a share of ", bytes, " bytes, but an output of ",
                       operation.outputs[i].size()));
    }
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::negotiation
