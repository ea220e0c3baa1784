#include "torch_plugin/optimizer/gradient_arena.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "torch_plugin/optimizer/gradient_tensors.h"

namespace hvdlite::internal {
namespace {

// A cache line, and a vector of every processor.
constexpr size_t kAlignment = 64;

// Appends `bytes` to what ends at `end`; returns where they begin.
size_t Append(size_t bytes, size_t& end) {
  const size_t begin = end;
  end = (begin + bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

// A tensor with a storage of its own, so that others who use its memory can be
// counted.
at::Tensor TensorAt(const collective::TensorMemory& memory, size_t begin,
                    at::IntArrayRef shape, at::IntArrayRef strides,
                    at::ScalarType dtype) {
  return at::from_blob(
      memory.bytes.data() + begin, shape, strides,
      [owner = memory.owner](void* /*data*/) {}, at::dtype(dtype));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GradientArena>> GradientArena::Create(
    World& world, const NamedParameters& parameters,
    const GroupedIndices& groups) {
  std::unique_ptr<GradientArena> arena(new GradientArena(groups.size()));
  arena->places_.resize(parameters.size());
  size_t end = 0;
  // backward() goes through a model from its end.
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
  HVDLITE_ASSIGN_OR_RETURN(arena->memory_,
                           world.AllocateTensors(std::max(end, kAlignment)));
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

}  // namespace hvdlite::internal
