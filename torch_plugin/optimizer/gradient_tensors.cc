#include "torch_plugin/optimizer/gradient_tensors.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/kernels/reduction_kernels.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite::internal {
namespace {

// Whether the gradient's bytes are elements of the type of `other`. A gradient
// keeps its type when its parameter's type changes. And its value may be the
// conjugate or the negative of its bytes.
bool HasElementsAs(const at::Tensor& gradient, const at::Tensor& other) {
  return gradient.scalar_type() == other.scalar_type() && !gradient.is_conj() &&
         !gradient.is_neg();
}

// Alignment for cache lines and for vectors.
constexpr size_t kAlignment = 64;

// Larger gradients are checked with several threads.
constexpr size_t kManyBytes = size_t{1} << 20;

// Appends `bytes` at `end` with alignment. Returns where they begin.
size_t Append(size_t bytes, size_t& end) {
  const size_t begin = end;
  end = (begin + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

// Makes a tensor with its own storage, so that other users of its memory can be
// counted.
at::Tensor TensorAt(const collective::TensorMemory& memory, size_t begin,
                    at::IntArrayRef shape, at::IntArrayRef strides,
                    at::ScalarType dtype) {
  return at::from_blob(
      memory.bytes.data() + begin, shape, strides,
      [owner = memory.owner](void* /*data*/) {}, at::dtype(dtype));
}

}  // namespace

std::vector<int64_t> GradientStrides(const at::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) {
    return parameter.strides().vec();
  }
  std::vector<int64_t> strides(parameter.sizes().size());
  int64_t stride = 1;
  for (size_t dim = strides.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(parameter.size(static_cast<int64_t>(dim)), 1);
  }
  return strides;
}

at::Tensor EmptyGradient(const at::Tensor& parameter) {
  return at::empty_strided(parameter.sizes(), GradientStrides(parameter),
                           parameter.options().requires_grad(false));
}

bool IsFinite(const at::Tensor& gradient) {
  if (!gradient.defined()) return true;
  const at::Layout layout = gradient.layout();
  // This is called for each gradient, so do nothing but the check.
  if (layout == at::kStrided && gradient.is_non_overlapping_and_dense()) {
    const size_t size = gradient.nbytes();
    if (size < kManyBytes) {
      const auto* const data =
          static_cast<const std::byte*>(gradient.unsafeGetTensorImpl()->data());
      return collective::AllFinite(DataTypeOf(gradient), {data, size});
    }
  }
  const at::NoGradGuard no_grad;
  if (layout == at::kSparse) return IsFinite(gradient._values());
  if (layout != at::kStrided || gradient.numel() == 0) return true;
  if (!gradient.is_non_overlapping_and_dense()) {
    return at::isfinite(gradient).all().item<bool>();
  }
  // A sum uses all threads of LibTorch. It is not finite only if it overflows
  // or an element is not finite.
  if (gradient.element_size() >= 4) {
    const at::Tensor sum = gradient.sum();
    if (collective::AllFinite(DataTypeOf(sum), BytesOf(sum))) return true;
  }
  return collective::AllFinite(DataTypeOf(gradient), BytesOf(gradient));
}

void MoveGradient(const at::Tensor& parameter, const at::Tensor& place) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (gradient.is_same(place) || gradient.requires_grad()) return;
  const at::NoGradGuard no_grad;
  if (gradient.data_ptr() != place.data_ptr() ||
      !HasElementsAs(gradient, place) || !SameLayout(gradient, place)) {
    const bool overlaps = gradient.storage().data() == place.storage().data();
    place.copy_(overlaps ? gradient.clone() : gradient);
  }
  gradient = place;
}

OperationTensors PresentGradient(const at::Tensor& parameter,
                                 const at::Tensor& gradient,
                                 size_t references) {
  const bool in_layout = parameter.is_non_overlapping_and_dense()
                             ? SameLayout(gradient, parameter)
                             : gradient.is_contiguous();
  if (in_layout && HasElementsAs(gradient, parameter) &&
      gradient.storage().use_count() <= references) {
    return {.input = gradient, .output = gradient, .result = gradient};
  }
  const at::NoGradGuard no_grad;
  const at::Tensor copy = EmptyGradient(parameter);
  copy.copy_(gradient);
  return {.input = copy, .output = copy, .result = gradient};
}

size_t ReferencesInHook(const at::Tensor& gradient,
                        const at::Tensor& accumulated) {
  // Others may still read a tensor after the hook if they refer to it.
  if (!gradient.defined() || !gradient.has_storage() ||
      !accumulated.defined() || !accumulated.has_storage() ||
      accumulated.use_count() != 1 || !accumulated.is_alias_of(gradient)) {
    return 1;
  }
  const bool has_base =
      accumulated.is_view() && accumulated._base().use_count() == 1;
  return has_base ? 3 : 2;
}

OperationTensors AbsentGradient(const at::Tensor& memory) {
  return {.input = {}, .output = memory, .result = memory};
}

OperationTensors ZeroGradient(const at::Tensor& memory) {
  memory.zero_();
  return {.input = memory, .output = memory, .result = memory};
}

at::Tensor SparseRows(const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const int64_t sparse_dimensions = std::min<int64_t>(gradient.dim(), 1);
  if (gradient.is_sparse() && gradient.sparse_dim() == sparse_dimensions) {
    return gradient.detach();
  }
  const at::Tensor dense =
      gradient.layout() == at::kStrided ? gradient : gradient.to_dense();
  return dense.detach().to_sparse(sparse_dimensions);
}

at::Tensor NoSparseRows(const at::Tensor& parameter) {
  const int64_t sparse_dimensions = std::min<int64_t>(parameter.dim(), 1);
  std::vector<int64_t> values = parameter.sizes().vec();
  if (values.empty()) values.push_back(0);
  values.front() = 0;
  return at::sparse_coo_tensor(
      at::empty({sparse_dimensions, 0}, at::kLong),
      at::empty(values, parameter.options().requires_grad(false)),
      parameter.sizes(),
      parameter.options().layout(at::kSparse).requires_grad(false));
}

GradientPresence::GradientPresence(const at::Tensor& memory,
                                   const std::vector<bool>& present, float unit,
                                   bool each_by_itself) {
  for (size_t i = 0; i < present.size(); ++i) {
    memory.data_ptr<float>()[i] = present[i] ? unit : 0;
  }
  if (each_by_itself) {
    tensors_ = memory.split(1);
  } else {
    tensors_.push_back(memory);
  }
}

std::vector<OperationTensors> GradientPresence::Tensors(bool absent) const {
  std::vector<OperationTensors> result;
  for (const at::Tensor& tensor : tensors_) {
    result.push_back({.input = absent ? at::Tensor() : tensor,
                      .output = tensor,
                      .result = tensor});
  }
  return result;
}

bool GradientPresence::AnywherePresent(size_t index) const {
  const at::Tensor& tensor =
      tensors_.size() == 1 ? tensors_.front() : tensors_[index];
  return tensor.data_ptr<float>()[tensors_.size() == 1 ? index : 0] != 0;
}

absl::StatusOr<std::unique_ptr<GradientArena>> GradientArena::Create(
    World& world, const NamedParameters& parameters,
    const GroupedIndices& groups) {
  std::unique_ptr<GradientArena> arena(new GradientArena(groups.size()));
  arena->places_.resize(parameters.size());
  size_t end = 0;
  // backward() goes through a model from its end to its start.
  for (size_t i = parameters.size(); i-- > 0;) {
    const at::Tensor& parameter = parameters[i].second;
    Place& place = arena->places_[i];
    place.bytes =
        static_cast<size_t>(parameter.numel()) * parameter.element_size();
    place.begin = Append(place.bytes, end);
  }
  std::vector<size_t> presences;
  for (const std::vector<size_t>& group : groups) {
    presences.push_back(
        Append(group.size() > 1 ? group.size() * sizeof(float) : 0, end));
  }
  HVDLITE_ASSIGN_OR_RETURN(arena->memory_, world.coordinator().AllocateTensors(
                                               std::max(end, kAlignment)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    Place& place = arena->places_[i];
    place.gradient = arena->Lay(place, parameters[i].second);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].size() == 1) continue;
    arena->presences_[i] =
        TensorAt(arena->memory_, presences[i],
                 {static_cast<int64_t>(groups[i].size())}, {1}, at::kFloat);
  }
  return arena;
}

at::Tensor GradientArena::Gradient(size_t index, const at::Tensor& parameter) {
  Place& place = places_[index];
  const bool fits =
      place.gradient.defined() &&
      place.gradient.scalar_type() == parameter.scalar_type() &&
      place.gradient.sizes() == parameter.sizes() &&
      place.gradient.strides() == at::IntArrayRef(GradientStrides(parameter));
  if (!fits) place.gradient = Lay(place, parameter);
  if (!place.gradient.defined()) outgrown_ = true;
  return place.gradient;
}

at::Tensor GradientArena::Lay(const Place& place,
                              const at::Tensor& parameter) const {
  const size_t bytes =
      static_cast<size_t>(parameter.numel()) * parameter.element_size();
  if (bytes > place.bytes) return {};
  return TensorAt(memory_, place.begin, parameter.sizes(),
                  GradientStrides(parameter), parameter.scalar_type());
}

absl::StatusOr<std::unique_ptr<GradientArena>> GradientArena::CreateOrWarn(
    World& world, const std::string& optimizer,
    const NamedParameters& parameters, const GroupedIndices& groups) {
  absl::StatusOr<std::unique_ptr<GradientArena>> arena =
      Create(world, parameters, groups);
  if (!absl::IsResourceExhausted(arena.status())) return arena;
  world.logger().Warning(absl::StrCat(
      "DistributedOptimizer '", optimizer,
      "' does not use gradient_as_fusion_view on this rank, which is slower: ",
      arena.status().message(),
      "; free memory (shared memory if several ranks run on this node), "
      "or set gradient_as_fusion_view(false)"));
  return nullptr;
}

}  // namespace hvdlite::internal
