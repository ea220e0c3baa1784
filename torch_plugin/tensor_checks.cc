#include "torch_plugin/tensor_checks.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

std::optional<collective::DataType> SupportedDataType(at::ScalarType type) {
  using collective::DataType;
  switch (type) {
    case at::kFloat:
      return DataType::kFloat32;
    case at::kDouble:
      return DataType::kFloat64;
    case at::kHalf:
      return DataType::kFloat16;
    case at::kBFloat16:
      return DataType::kBFloat16;
    case at::kInt:
      return DataType::kInt32;
    case at::kLong:
      return DataType::kInt64;
    case at::kByte:
      return DataType::kUint8;
    case at::kChar:
      return DataType::kInt8;
    case at::kBool:
      return DataType::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace

void CheckTensor(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) {
    ThrowError(absl::StrCat(what, ": the tensor is undefined"));
  }
  if (tensor.is_sparse()) {
    ThrowError(absl::StrCat(
        what, ": sparse tensors are not supported yet; pass tensor.to_dense()",
        " (for an embedding's gradient, construct it with sparse(false))"));
  }
  if (tensor.layout() != at::kStrided) {
    ThrowError(absl::StrCat(
        what,
        ": only dense (strided) tensors are supported; convert it first"));
  }
  if (!tensor.device().is_cpu()) {
    ThrowError(absl::StrCat(what, ": the tensor is on ", tensor.device().str(),
                            ", but only CPU tensors are supported"));
  }
  if (!SupportedDataType(tensor.scalar_type()).has_value()) {
    ThrowError(absl::StrCat(
        what, ": dtype ", c10::toString(tensor.scalar_type()),
        " is not supported; use float32, float64, float16, bfloat16, int32, "
        "int64, uint8, int8 or bool"));
  }
}

collective::DataType DataTypeOf(const at::Tensor& tensor) {
  return SupportedDataType(tensor.scalar_type()).value();
}

absl::Span<std::byte> BytesOf(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

bool SameLayout(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) {
    return false;
  }
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) return false;
  }
  return true;
}

std::vector<int64_t> CanonicalStrides(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return {};
  std::vector<int64_t> strides = tensor.strides().vec();
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    if (tensor.size(static_cast<int64_t>(dim)) == 1) strides[dim] = 1;
  }
  return strides;
}

const char* NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::Average:
      return "Average";
    case ReduceOp::Sum:
      return "Sum";
    case ReduceOp::Min:
      return "Min";
    case ReduceOp::Max:
      return "Max";
    case ReduceOp::Product:
      return "Product";
    case ReduceOp::Adasum:
      return "Adasum";
  }
  return "?";
}

negotiation::Request RequestOf(const AllreduceOptions& options,
                               const std::string& what) {
  if (options.compression() != Compression::None) {
    ThrowError(absl::StrCat(
        what, ": compression ",
        options.compression() == Compression::FP16 ? "FP16" : "BF16",
        " is not available yet; use Compression::None"));
  }
  negotiation::Request request;
  request.collective = negotiation::Collective::kAllreduce;
  request.prescale_factor = options.prescale_factor();
  request.postscale_factor = options.postscale_factor();
  switch (options.op()) {
    case ReduceOp::Average:
      request.average = true;
      request.op = collective::ReduceOp::kSum;
      return request;
    case ReduceOp::Sum:
      request.op = collective::ReduceOp::kSum;
      return request;
    case ReduceOp::Min:
      request.op = collective::ReduceOp::kMin;
      return request;
    case ReduceOp::Max:
      request.op = collective::ReduceOp::kMax;
      return request;
    case ReduceOp::Product:
      request.op = collective::ReduceOp::kProduct;
      return request;
    case ReduceOp::Adasum:
      ThrowError(absl::StrCat(
          what, ": ReduceOp::Adasum is not available yet; use Average"));
  }
  ThrowError(absl::StrCat(what, ": unknown ReduceOp ",
                          static_cast<int>(options.op())));
}

}  // namespace hvdlite::internal
