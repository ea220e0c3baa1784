#include "negotiation/engine/operation.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collective/communicator.h"
#include "negotiation/protocol/rank_list.h"

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

// Checks that inputs and outputs have the request's size, except outputs that
// are shares.
absl::Status CheckSizes(const Operation& operation) {
  const Request& request = operation.request;
  const bool whole_output = request.traits().memory != MemoryRule::kShare;
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

// Checks that the inputs have the operation's numbers of rows.
absl::Status CheckRows(const Operation& operation) {
  const Request& request = operation.request;
  const bool gathers = request.traits().memory == MemoryRule::kRows;
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

// For example "an alltoall" or "a reducescatter".
std::string OneOfKind(const Request& request) {
  const std::string kind = absl::AsciiStrToLower(NameOf(request.collective));
  const bool has_vowel = absl::StrContains("aeiou", kind.substr(0, 1));
  return absl::StrCat(has_vowel ? "an " : "a ", kind);
}

// Checks what the request's kind demands, without looking at the memory.
absl::Status CheckKind(const Operation& operation) {
  const Request& request = operation.request;
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", request.name, "' is ", what));
  };
  const CollectiveTraits& traits = request.traits();
  if (operation.absent && !traits.may_be_absent) {
    return error("absent, but not an allreduce");
  }
  if (traits.memory == MemoryRule::kSplitRows && request.tensors.size() != 1) {
    return error(absl::StrCat(OneOfKind(request),
                              " that does not have exactly one tensor"));
  }
  if (request.collective == Collective::kRemoveProcessSet &&
      request.removed == 0) {
    return error(
        "to remove the process set of all ranks, which cannot be removed");
  }
  if (request.collective == Collective::kAddProcessSet &&
      (request.members.empty() ||
       !absl::c_is_sorted(request.members, std::less_equal<>()))) {
    return error("to add a process set whose ranks are not in ascending order");
  }
  for (const TensorSpec& tensor : request.tensors) {
    if (traits.memory == MemoryRule::kShare && tensor.shape.empty()) {
      return error(
          absl::StrCat(OneOfKind(request), " of a tensor without dimensions"));
    }
    if (request.collective == Collective::kAdasum &&
        !collective::IsFloat(tensor.dtype)) {
      return error("an Adasum of a tensor without a float type");
    }
    if (!collective::HasOp(tensor.dtype, request.op)) {
      return error(absl::StrCat("a ", NameOf(request.op), " of ",
                                NameOf(tensor.dtype), ", which is undefined"));
    }
  }
  return absl::OkStatus();
}

// InvalidArgument unless the outputs of an operation that passed CheckMemory
// have the size of the share of member number `place` of `members`.
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

using Scratch = std::vector<std::byte>;

// The results of all tensors are written to the same place, one after the
// other.
Outputs Overlapping(Scratch& scratch, const std::vector<size_t>& sizes) {
  scratch.resize(sizes.empty() ? 0
                               : *std::max_element(sizes.begin(), sizes.end()));
  Outputs outputs;
  for (const size_t size : sizes) {
    outputs.push_back(absl::MakeSpan(scratch).first(size));
  }
  return outputs;
}

}  // namespace

int64_t Operation::bytes() const {
  if (!request.rows_differ()) return request.size_bytes();
  int64_t bytes = 0;
  for (const auto& input : inputs) bytes += static_cast<int64_t>(input.size());
  return bytes;
}

absl::Status PersistentOperation::Load(const Request& request, bool absent,
                                       Inputs inputs, Outputs outputs,
                                       std::shared_ptr<void> keep_alive) {
  if (lost_) return absl::OkStatus();
  Release();
  if (operation.request != request) {
    operation.request = request;
    hint = {};
  }
  operation.absent = absent;
  if (request.local_error.empty()) {
    operation.inputs = std::move(inputs);
    operation.outputs = std::move(outputs);
    operation.keep_alive = std::move(keep_alive);
    if (absl::Status status = CheckMemory(operation); !status.ok()) {
      Release();
      return status;
    }
  }
  loaded_ = true;
  return absl::OkStatus();
}

void PersistentOperation::Release() {
  if (lost_) return;
  operation.inputs.clear();
  operation.outputs.clear();
  operation.keep_alive.reset();
  loaded_ = false;
}

absl::Status CheckMemory(const Operation& operation) {
  const Request& request = operation.request;
  if (request.name.empty()) {
    return absl::InvalidArgumentError("an operation needs a name");
  }
  if (!request.local_error.empty()) return absl::OkStatus();
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

absl::Status CheckMember(const Operation& operation,
                         absl::Span<const int> members,
                         absl::Span<const int> world, int rank) {
  const Request& request = operation.request;
  if (!request.local_error.empty()) return absl::OkStatus();
  const CollectiveTraits& traits = request.traits();
  const auto kind = [&] { return absl::AsciiStrToLower(traits.name); };
  if (traits.has_root && !absl::c_binary_search(members, request.root_rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kind(), " of '", request.name, "': root rank ", request.root_rank,
        " is not one of the ranks that take part (", FormatRanks(members),
        ")"));
  }
  if (traits.memory == MemoryRule::kSplitRows &&
      operation.rows.size() != members.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kind(), " of '", request.name, "' has splits for ",
        operation.rows.size(), " ranks, but ", members.size(), " take part"));
  }
  if (traits.memory == MemoryRule::kShare) {
    const auto place = absl::c_lower_bound(members, rank) - members.begin();
    return CheckShare(operation, static_cast<int>(members.size()),
                      static_cast<int>(place));
  }
  if (request.collective == Collective::kAddProcessSet &&
      (request.members.front() < 0 || request.members.back() > world.back())) {
    return absl::InvalidArgumentError(
        absl::StrCat("process set of ", FormatRanks(request.members),
                     ": the world has ", FormatRanks(world)));
  }
  return absl::OkStatus();
}

SubmittedPtr MakeNeutralOperation(Request request) {
  auto pending = std::make_shared<SubmittedOperation>();
  auto scratch = std::make_shared<Scratch>();
  Operation& operation = pending->operation;
  if (request.rows_differ()) {
    operation.inputs.resize(request.tensors.size());
    operation.rows.resize(request.tensors.size());
    operation.allocate = [scratch,
                          tensors = request.tensors](const RowsByMember& rows) {
      std::vector<size_t> sizes;
      for (size_t i = 0; i < tensors.size(); ++i) {
        sizes.push_back(static_cast<size_t>(
            std::accumulate(rows[i].begin(), rows[i].end(), int64_t{0}) *
            RowBytes(tensors[i])));
      }
      return Overlapping(*scratch, sizes);
    };
  } else {
    operation.absent = true;
    std::vector<size_t> sizes;
    for (const TensorSpec& tensor : request.tensors) {
      sizes.push_back(static_cast<size_t>(SizeBytes(tensor)));
    }
    operation.outputs = Overlapping(*scratch, sizes);
  }
  operation.request = std::move(request);
  operation.keep_alive = std::move(scratch);
  return pending;
}

}  // namespace hvdlite::negotiation
