// Brings gradients into the form in which they are reduced. GradientArena: one
// piece of memory that an optimizer's gradients lie in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"
#include "torch_plugin/optimizer/parameters.h"

namespace hvdlite::internal {

// Of the layout in which the parameter's gradient is reduced: the parameter's
// own, or row-major where that is not dense.
std::vector<int64_t> GradientStrides(const at::Tensor& parameter);
// Uninitialised memory with that layout.
at::Tensor EmptyGradient(const at::Tensor& parameter);

// Whether there is no NaN and no infinity in the gradient, which may be sparse
// or undefined.
bool IsFinite(const at::Tensor& gradient);

// Brings the parameter's dense gradient into `place`, which has the layout of
// EmptyGradient() and becomes the gradient: without a copy if it lies there
// already. A gradient that is part of a graph stays where it is.
void MoveGradient(const at::Tensor& parameter, const at::Tensor& place);

// The tensors to reduce a dense `gradient` with. `gradient` is used as it lies
// in memory if it has the type and layout of EmptyGradient(), which every
// rank's gradient then has, and if no more than `references` tensors, itself
// included, refer to that memory: another gradient may share it, or backward()
// may still read it. Else it is copied there and back.
OperationTensors PresentGradient(const at::Tensor& parameter,
                                 const at::Tensor& gradient, size_t references);
// How many tensors refer to the memory of `gradient` in the hook that follows
// its accumulation, if nobody but autograd does: itself, `accumulated` if
// autograd made that the gradient without a copy, and what that is a view of.
// The hook's caller drops the others.
size_t ReferencesInHook(const at::Tensor& gradient,
                        const at::Tensor& accumulated);
// For an operation that this rank takes no part in but for its result, which
// goes into `memory`.
OperationTensors AbsentGradient(const at::Tensor& memory);
// A gradient of zeros, in a group in which others are present; they overwrite
// `memory`.
OperationTensors ZeroGradient(const at::Tensor& memory);

// Sparse along the first dimension alone, as an embedding's gradient is.
at::Tensor SparseRows(const at::Tensor& gradient);
// The sparse gradient of a rank that has none.
at::Tensor NoSparseRows(const at::Tensor& parameter);

// Travels with a group's gradients and tells, once reduced, which of them some
// rank has: each rank adds `unit` where it has one.
class GradientPresence {
 public:
  // Overwrites `memory`, a float32 per gradient. `each_by_itself`: as one
  // tensor per gradient, for reductions that do not work element by element;
  // else as one tensor for all.
  GradientPresence(const at::Tensor& memory, const std::vector<bool>& present,
                   float unit, bool each_by_itself);

  // For an operation that this rank is absent from, or present in.
  std::vector<OperationTensors> Tensors(bool absent) const;

  // Once reduced: whether some rank has gradient `index`.
  bool AnywherePresent(size_t index) const;

 private:
  std::vector<at::Tensor> tensors_;
};

// One piece of memory that an optimizer's gradients lie in. Each parameter's
// gradient has its place, and so has each group's presence (see
// GradientPresence). The places follow from sizes and types of the parameters
// alone, so that they are the same on every rank; gradients that backward()
// completes one after the other lie beside each other. Tensors keep their
// memory alive, whatever becomes of the arena and the world. One thread at a
// time.
class GradientArena {
 public:
  // Errors: as Coordinator::AllocateTensors.
  static absl::StatusOr<std::unique_ptr<GradientArena>> Create(
      World& world, const NamedParameters& parameters,
      const GroupedIndices& groups);

  // The same; null, with a warning that names the optimizer, where there is no
  // memory: gradients then lie wherever backward() makes them, on this rank,
  // and are packed as everywhere.
  static absl::StatusOr<std::unique_ptr<GradientArena>> CreateOrWarn(
      World& world, const std::string& optimizer,
      const NamedParameters& parameters, const GroupedIndices& groups);

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
