#include "collective/call_arguments.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace hvdlite::collective {

absl::Status CheckAllreduceArguments(absl::Span<const std::byte> buffer,
                                     DataType dtype, ReduceOp op) {
  if (static_cast<int>(dtype) >= kNumDataTypes) {
    return absl::InvalidArgumentError(
        absl::StrCat("Allreduce: unknown data type ", static_cast<int>(dtype)));
  }
  if (static_cast<int>(op) >= kNumReduceOps) {
    return absl::InvalidArgumentError(
        absl::StrCat("Allreduce: unknown operation ", static_cast<int>(op)));
  }
  const size_t element_bytes = SizeOf(dtype);
  if (buffer.size() % element_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Allreduce: ", buffer.size(), " bytes are not a whole number of ",
        NameOf(dtype), " elements of ", element_bytes, " bytes"));
  }
  if (reinterpret_cast<uintptr_t>(buffer.data()) % element_bytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Allreduce: the buffer is not aligned to ", element_bytes,
                     " bytes, as ", NameOf(dtype), " needs"));
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

}  // namespace hvdlite::collective
