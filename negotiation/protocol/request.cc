#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {
namespace {

int64_t Product(const TensorSpec& tensor, size_t first_dimension) {
  auto product = static_cast<int64_t>(collective::SizeOf(tensor.dtype));
  for (size_t i = first_dimension; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != kAnyLength) product *= tensor.shape[i];
  }
  return product;
}

}  // namespace

absl::string_view NameOf(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
      return "ALLREDUCE";
    case Collective::kBroadcast:
      return "BROADCAST";
    case Collective::kBarrier:
      return "BARRIER";
    case Collective::kAdasum:
      return "ADASUM";
    case Collective::kAllgather:
      return "ALLGATHER";
    case Collective::kAlltoall:
      return "ALLTOALL";
    case Collective::kReducescatter:
      return "REDUCESCATTER";
    case Collective::kAddProcessSet:
      return "ADD_PROCESS_SET";
    case Collective::kRemoveProcessSet:
      return "REMOVE_PROCESS_SET";
    case Collective::kJoin:
      return "JOIN";
  }
  return "UNKNOWN";
}

int64_t SizeBytes(const TensorSpec& tensor) { return Product(tensor, 0); }

int64_t RowBytes(const TensorSpec& tensor) { return Product(tensor, 1); }

int64_t Request::size_bytes() const {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += SizeBytes(tensor);
  return bytes;
}

bool Request::rows_differ() const {
  return collective == Collective::kAllgather ||
         collective == Collective::kAlltoall;
}

}  // namespace hvdlite::negotiation
