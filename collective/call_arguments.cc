#include "collective/call_arguments.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

constexpr int kLargestTag = 32767;

}  // namespace

absl::Status CheckReductionArguments(absl::string_view call,
                                     absl::Span<const std::byte> buffer,
                                     DataType dtype, ReduceOp op) {
  if (static_cast<int>(dtype) >= kNumDataTypes) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": unknown data type ", static_cast<int>(dtype)));
  }
  if (static_cast<int>(op) >= kNumReduceOps) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": unknown operation ", static_cast<int>(op)));
  }
  if (!HasOp(dtype, op)) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": ", NameOf(dtype), " has no ", NameOf(op)));
  }
  const size_t element_bytes = SizeOf(dtype);
  if (buffer.size() % element_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        call, ": ", buffer.size(), " bytes are not a whole number of ",
        NameOf(dtype), " elements of ", element_bytes, " bytes"));
  }
  if (reinterpret_cast<uintptr_t>(buffer.data()) % element_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": the buffer is not aligned to ", element_bytes,
                     " bytes, as ", NameOf(dtype), " needs"));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(absl::string_view call, size_t buffer_bytes,
                        absl::Span<const size_t> bytes_of_rank, int size) {
  if (bytes_of_rank.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": ", bytes_of_rank.size(),
                     " parts are given, but there are ", size, " ranks"));
  }
  size_t left = buffer_bytes;
  bool fits = true;
  for (const size_t bytes : bytes_of_rank) {
    fits = fits && bytes <= left;
    left -= bytes;
  }
  if (!fits || left != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        call, ": parts of ", absl::StrJoin(bytes_of_rank, ", "),
        " bytes do not add up to the ", buffer_bytes, " bytes of the buffer"));
  }
  return absl::OkStatus();
}

absl::Status CheckReduceScatterArguments(absl::Span<const std::byte> buffer,
                                         absl::Span<const size_t> bytes_of_rank,
                                         DataType dtype, ReduceOp op,
                                         int size) {
  HVDLITE_RETURN_IF_ERROR(
      CheckReductionArguments("ReduceScatter", buffer, dtype, op));
  HVDLITE_RETURN_IF_ERROR(
      CheckParts("ReduceScatter", buffer.size(), bytes_of_rank, size));
  for (const size_t bytes : bytes_of_rank) {
    if (bytes % SizeOf(dtype) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("ReduceScatter: a part of ", bytes,
                       " bytes is not a whole number of ", NameOf(dtype),
                       " elements of ", SizeOf(dtype), " bytes"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAlltoallArguments(size_t input_size,
                                    absl::Span<const size_t> input_bytes,
                                    size_t output_size,
                                    absl::Span<const size_t> output_bytes,
                                    int rank, int size) {
  HVDLITE_RETURN_IF_ERROR(
      CheckParts("Alltoall's input", input_size, input_bytes, size));
  HVDLITE_RETURN_IF_ERROR(
      CheckParts("Alltoall's output", output_size, output_bytes, size));
  if (input_bytes[rank] != output_bytes[rank]) {
    return absl::InvalidArgumentError(
        absl::StrCat("Alltoall: rank ", rank, " sends ", input_bytes[rank],
                     " bytes to itself, but expects ", output_bytes[rank]));
  }
  return absl::OkStatus();
}

absl::Status CheckBroadcastArguments(int root, int size) {
  if (root < 0 || root >= size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Broadcast: root ", root, " is not one of the ranks 0 to ", size - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckExchangeArguments(int peer, int rank, int size) {
  if (peer == rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("Exchange: rank ", rank, " names itself as its peer"));
  }
  if (peer < 0 || peer >= size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Exchange: peer ", peer, " is not one of the ranks 0 to ", size - 1));
  }
  return absl::OkStatus();
}

absl::Status CheckSubgroupArguments(absl::Span<const int> members, int tag,
                                    int rank, int size) {
  const auto invalid = [&](const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat("CreateSubgroup of ranks [",
                                                   absl::StrJoin(members, ", "),
                                                   "]: ", why...));
  };
  for (const int member : members) {
    if (member < 0 || member >= size) {
      return invalid(member, " is not one of the ranks 0 to ", size - 1);
    }
  }
  std::vector<int> sorted(members.begin(), members.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return invalid(*twice, " appears twice");
  if (std::find(members.begin(), members.end(), rank) == members.end()) {
    return invalid("rank ", rank, " calls it, but is not one of them");
  }
  if (tag < 0 || tag > kLargestTag) {
    return invalid("the tag is ", tag, "; it must be from 0 to ", kLargestTag);
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
