// GradientArena: one piece of memory that an optimizer's gradients lie in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/optimizer/gradient_groups.h"
#include "torch_plugin/optimizer/named_parameters.h"

namespace hvdlite::internal {

// Each parameter's gradient has its place, and so has each group's presence
// (see GradientPresence). The places follow from sizes and types of the
// parameters alone, so that they are the same on every rank; gradients that
// backward() completes one after the other lie beside each other. Tensors keep
// their memory alive, whatever becomes of the arena and the world. One thread
// at a time.
class GradientArena {
 public:
  // Errors: as World::AllocateTensors.
  static absl::StatusOr<std::unique_ptr<GradientArena>> Create(
      World& world, const NamedParameters& parameters,
      const GroupedIndices& groups);

  // Whether some parameter was found larger than its place.
  bool outgrown() const { return outgrown_; }

  // Where the gradient of `parameter`, which has this index, lies while it is
  // reduced: zeros at first, with the layout of EmptyGradient(). The same
  // tensor each time, until the layout of the parameter changes. Undefined if
  // the parameter has become larger than its place.
  at::Tensor Gradient(size_t index, const at::Tensor& parameter);

  // Of a group of several gradients: as many float32.
  at::Tensor Presence(size_t group) const { return presences_[group]; }

 private:
  struct Place {
    size_t begin;
    size_t bytes;
    at::Tensor gradient;
  };

  explicit GradientArena(size_t num_groups) : presences_(num_groups) {}

  // The tensor at `place`, with the layout of the gradient of `parameter`.
  at::Tensor Lay(const Place& place, const at::Tensor& parameter) const;

  bool outgrown_ = false;
  collective::TensorMemory memory_;
  std::vector<Place> places_;          // by parameter
  std::vector<at::Tensor> presences_;  // by group; undefined for groups of one
};

}  // namespace hvdlite::internal
