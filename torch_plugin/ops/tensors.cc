#include "torch_plugin/ops/tensors.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/ops/libtorch_versions.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// LibTorch's names of the data types, by value. Undefined if it has none.
constexpr at::ScalarType kScalarTypes[] = {
    at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,     at::kInt,
    at::kLong,  at::kByte,   at::kChar, at::kBool,         at::kShort,
    kUint16,    kUint32,     kUint64,   at::kComplexFloat, at::kComplexDouble};
static_assert(std::size(kScalarTypes) == collective::kNumDataTypes);

std::optional<collective::DataType> SupportedDataType(at::ScalarType type) {
  const auto found = absl::c_find(kScalarTypes, type);
  if (found == std::end(kScalarTypes)) return std::nullopt;
  return static_cast<collective::DataType>(found - kScalarTypes);
}

// "float32, ..., complex64 or complex128".
std::string SupportedNames() {
  std::vector<absl::string_view> names;
  for (int i = 0; i < collective::kNumDataTypes; ++i) {
    if (kScalarTypes[i] == at::ScalarType::Undefined) continue;
    names.push_back(collective::kDataTypes[i].name);
  }
  const absl::string_view last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

// Only the first local error is kept.
void SetLocalError(negotiation::Request& request, const std::string& reason) {
  if (request.local_error.empty()) request.local_error = reason;
}

void SetOp(negotiation::Request& request, ReduceOp op) {
  switch (op) {
    case ReduceOp::Average:
      request.average = true;
      request.op = collective::ReduceOp::kSum;
      return;
    case ReduceOp::Sum:
      request.op = collective::ReduceOp::kSum;
      return;
    case ReduceOp::Min:
      request.op = collective::ReduceOp::kMin;
      return;
    case ReduceOp::Max:
      request.op = collective::ReduceOp::kMax;
      return;
    case ReduceOp::Product:
      request.op = collective::ReduceOp::kProduct;
      return;
    case ReduceOp::Adasum:
      request.collective = negotiation::Collective::kAdasum;
      request.op = collective::ReduceOp::kSum;
      return;
  }
  SetLocalError(request,
                absl::StrCat("unknown ReduceOp ", static_cast<int>(op)));
}

void SetScales(negotiation::Request& request, double prescale,
               double postscale) {
  request.prescale_factor = prescale;
  request.postscale_factor = postscale;
  if (std::isfinite(prescale) && std::isfinite(postscale)) return;
  SetLocalError(
      request,
      absl::StrCat("the scales must be finite numbers, but prescale_factor "
                   "is ",
                   prescale, " and postscale_factor is ", postscale));
}

void SetCompression(negotiation::Request& request, Compression compression) {
  switch (compression) {
    case Compression::None:
      return;
    case Compression::FP16:
      request.compression = collective::Compression::kFloat16;
      return;
    case Compression::BF16:
      request.compression = collective::Compression::kBFloat16;
      return;
  }
  SetLocalError(request, absl::StrCat("unknown Compression ",
                                      static_cast<int>(compression)));
}

// The bytes from the first byte of a tensor to behind its last one.
struct Extent {
  uintptr_t begin;
  uintptr_t end;
};

Extent ExtentOf(const at::Tensor& tensor) {
  int64_t last_element = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last_element += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  return {.begin = begin,
          .end = begin + static_cast<uintptr_t>(last_element + 1) *
                             tensor.element_size()};
}

// The same for tensors whose extents form one block of memory. Counts how often
// each byte is used.
bool BytesAreUsedTwice(const std::vector<at::Tensor>& tensors, Extent all) {
  const at::Tensor uses =
      at::zeros({static_cast<int64_t>(all.end - all.begin)}, at::kByte);
  for (const at::Tensor& tensor : tensors) {
    const auto bytes = static_cast<int64_t>(tensor.element_size());
    std::vector<int64_t> shape = tensor.sizes().vec();
    std::vector<int64_t> strides = tensor.strides().vec();
    for (int64_t& stride : strides) stride *= bytes;
    shape.push_back(bytes);
    strides.push_back(1);
    const at::Tensor used = uses.as_strided(
        shape, strides,
        static_cast<int64_t>(ExtentOf(tensor).begin - all.begin));
    if (used.any().item<bool>()) return true;
    used.fill_(1);
  }
  return false;
}

}  // namespace

std::string TensorError(const at::Tensor& tensor) {
  if (!tensor.defined()) return "the tensor is undefined";
  if (tensor.is_sparse()) {
    return "the tensor is sparse; call sparse_allreduce(), or pass "
           "tensor.to_dense()";
  }
  if (tensor.layout() != at::kStrided) {
    return "only dense (strided) tensors are supported; convert it first";
  }
  if (!tensor.device().is_cpu()) {
    return absl::StrCat("the tensor is on ", tensor.device().str(),
                        ", but only CPU tensors are supported");
  }
  if (!SupportedDataType(tensor.scalar_type()).has_value()) {
    return absl::StrCat("dtype ", c10::toString(tensor.scalar_type()),
                        " is not supported; use ", SupportedNames());
  }
  return "";
}

void CheckTensor(const at::Tensor& tensor, const std::string& what) {
  const std::string local_error = TensorError(tensor);
  if (!local_error.empty()) ThrowError(absl::StrCat(what, ": ", local_error));
}

collective::DataType DataTypeOf(const at::Tensor& tensor) {
  return SupportedDataType(tensor.scalar_type()).value();
}

negotiation::TensorSpec SpecInMemoryOrder(const at::Tensor& tensor) {
  return {.dtype = DataTypeOf(tensor),
          .shape = tensor.sizes().vec(),
          .strides = CanonicalStrides(tensor)};
}

bool IsSpecOf(const negotiation::TensorSpec& spec, const at::Tensor& tensor) {
  if (spec.dtype != DataTypeOf(tensor) ||
      tensor.sizes() != at::IntArrayRef(spec.shape)) {
    return false;
  }
  return spec.strides.empty() ? tensor.is_contiguous()
                              : spec.strides == CanonicalStrides(tensor);
}

absl::Span<std::byte> BytesOf(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

bool SameLayout(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  if (a.is_contiguous() && b.is_contiguous()) return true;
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

negotiation::Request RequestOf(const AllreduceOptions& options) {
  negotiation::Request request;
  request.collective = negotiation::Collective::kAllreduce;
  SetOp(request, options.op());
  SetScales(request, options.prescale_factor(), options.postscale_factor());
  SetCompression(request, options.compression());
  return request;
}

negotiation::Request RequestOf(const AllreduceOptions& options,
                               const std::string& what) {
  negotiation::Request request = RequestOf(options);
  if (!request.local_error.empty()) {
    ThrowError(absl::StrCat(what, ": ", request.local_error));
  }
  return request;
}

negotiation::Request RequestOf(const ReducescatterOptions& options) {
  negotiation::Request request;
  SetOp(request, options.op());
  if (options.op() == ReduceOp::Adasum) {
    SetLocalError(
        request,
        "reducescatter does not support Adasum; use Average, Sum, Min, Max or "
        "Product");
  }
  request.collective = negotiation::Collective::kReducescatter;
  SetScales(request, options.prescale_factor(), options.postscale_factor());
  return request;
}

std::string ReductionError(const negotiation::Request& request,
                           collective::DataType dtype) {
  using collective::DataType;
  if (request.average && dtype == DataType::kBool) {
    return "bool tensors do not support Average; use Sum (logical or)";
  }
  if (request.collective == negotiation::Collective::kAdasum &&
      !collective::IsFloat(dtype)) {
    return absl::StrCat(
        "Adasum supports floating-point tensors only, but the dtype is ",
        collective::NameOf(dtype), "; use Sum or Average");
  }
  if (!collective::HasOp(dtype, request.op)) {
    return absl::StrCat(collective::NameOf(dtype), " tensors do not support ",
                        collective::NameOf(request.op),
                        "; use Sum or Average, or pass "
                        "torch::view_as_real(tensor), a tensor of floats");
  }
  return "";
}

at::Tensor RowMajor(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  // Zeros that autograd creates have no memory.
  if (tensor._is_zerotensor()) {
    return at::zeros(tensor.sizes(), tensor.options().requires_grad(false));
  }
  // All of these return the tensor itself if nothing is to be done.
  const at::Tensor plain = tensor.requires_grad() ? tensor.detach() : tensor;
  return plain.contiguous().resolve_conj().resolve_neg();
}

OperationTensors RowMajorTensors(const at::Tensor& tensor, bool in_place) {
  const at::Tensor row_major = RowMajor(tensor);
  if (!in_place) {
    const at::Tensor output = at::empty_like(row_major);
    return {.input = row_major, .output = output, .result = output};
  }
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  const bool direct = row_major.data_ptr() == tensor.data_ptr();
  return {.input = row_major,
          .output = direct ? tensor : row_major,
          .result = tensor};
}

bool OverlapInMemory(at::TensorList tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sorted;
  for (const at::Tensor& tensor : tensors) {
    if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes) return true;
    if (tensors.size() > 1 && tensor.numel() > 0) sorted.push_back(tensor);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const at::Tensor& a, const at::Tensor& b) {
              return a.data_ptr() < b.data_ptr();
            });
  // Only neighbours whose extents overlap need a closer look.
  for (size_t first = 0; first < sorted.size();) {
    Extent all = ExtentOf(sorted[first]);
    size_t last = first + 1;
    for (; last < sorted.size(); ++last) {
      const Extent extent = ExtentOf(sorted[last]);
      if (extent.begin >= all.end) break;
      all.end = std::max(all.end, extent.end);
    }
    if (last - first > 1 &&
        BytesAreUsedTwice({sorted.begin() + static_cast<int64_t>(first),
                           sorted.begin() + static_cast<int64_t>(last)},
                          all)) {
      return true;
    }
    first = last;
  }
  return false;
}

std::vector<at::Tensor> ResultsOf(absl::Span<const OperationTensors> tensors) {
  std::vector<at::Tensor> results;
  results.reserve(tensors.size());
  for (const OperationTensors& one : tensors) results.push_back(one.result);
  return results;
}

void CopyResults(absl::Span<const OperationTensors> tensors) {
  const at::NoGradGuard no_grad;
  for (const OperationTensors& one : tensors) {
    if (!one.result.is_same(one.output)) one.result.copy_(one.output);
  }
}

}  // namespace hvdlite::internal
