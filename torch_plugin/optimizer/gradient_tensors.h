// Converts gradients to the form in which they are reduced. GradientArena: one
// block of memory for all gradients of an optimizer.
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

// Strides in which the parameter's gradient is reduced: the parameter's own, or
// row-major if the parameter is not dense.
std::vector<int64_t> GradientStrides(const at::Tensor& parameter);
// Makes uninitialised memory with these strides.
at::Tensor EmptyGradient(const at::Tensor& parameter);

// Whether the gradient has no NaN and no infinity. It may be sparse or
// undefined.
bool IsFinite(const at::Tensor& gradient);

// Moves the parameter's dense gradient to `place`, which has the layout of
// EmptyGradient(). `place` becomes the gradient, without a copy if the gradient
// already lies there. A gradient that is part of a graph is not moved.
void MoveGradient(const at::Tensor& parameter, const at::Tensor& place);

// Returns the tensors for reducing a dense `gradient`. It is reduced in place
// if it has the type and layout of EmptyGradient(), and if at most `references`
// tensors, itself included, refer to its memory. Otherwise another gradient may
// share the memory or backward() may still read it, and the gradient is copied
// and copied back. All ranks use the layout of EmptyGradient().
OperationTensors PresentGradient(const at::Tensor& parameter,
                                 const at::Tensor& gradient, size_t references);
// Counts the tensors that refer to the memory of `gradient` in the hook after
// its accumulation, if only autograd refers to it: `gradient` itself,
// `accumulated` if autograd used it as the gradient without a copy, and the
// base of that view. The hook's caller drops the others.
size_t ReferencesInHook(const at::Tensor& gradient,
                        const at::Tensor& accumulated);
// For an operation to which this rank contributes nothing. The result goes into
// `memory`.
OperationTensors AbsentGradient(const at::Tensor& memory);
// A gradient of zeros in a group in which other gradients are present.
// Overwrites `memory`.
OperationTensors ZeroGradient(const at::Tensor& memory);

// Returns the gradient in sparse form along the first dimension only, like that
// of an embedding.
at::Tensor SparseRows(const at::Tensor& gradient);
// The sparse gradient of a rank without values.
at::Tensor NoSparseRows(const at::Tensor& parameter);

// A tensor that is reduced with a group's gradients. The result shows which
// gradients some rank has: each rank adds `unit` for a gradient that it has.
class GradientPresence {
 public:
  // Overwrites `memory`, one float32 per gradient. `each_by_itself`: uses one
  // tensor per gradient, for reductions that do not work element by element.
  // Otherwise uses one tensor for all.
  GradientPresence(const at::Tensor& memory, const std::vector<bool>& present,
                   float unit, bool each_by_itself);

  // `absent`: this rank contributes nothing to the operation.
  std::vector<OperationTensors> Tensors(bool absent) const;

  // Whether some rank has gradient `index`. Valid after the reduction.
  bool AnywherePresent(size_t index) const;

 private:
  std::vector<at::Tensor> tensors_;
};

// One block of memory for the gradients of an optimizer. Each gradient has a
// place in it, and so has each group's GradientPresence. The places depend only
// on the sizes and types of the parameters, so they are the same on every rank.
// Gradients that backward() completes one after the other are neighbours.
// Tensors keep their memory alive, also when arena and world are gone. Use it
// in one thread at a time.
class GradientArena {
 public:
  // Returns the errors of Coordinator::AllocateTensors.
  static absl::StatusOr<std::unique_ptr<GradientArena>> Create(
      World& world, const NamedParameters& parameters,
      const GroupedIndices& groups);

  // The same, but returns null with a warning if there is too little memory.
  // This rank then packs its gradients, as without the option.
  static absl::StatusOr<std::unique_ptr<GradientArena>> CreateOrWarn(
      World& world, const std::string& optimizer,
      const NamedParameters& parameters, const GroupedIndices& groups);

  // Whether some parameter has become larger than its place.
  bool outgrown() const { return outgrown_; }

  // The place of the gradient of `parameter`, which has this index: zeros at
  // first, with the layout of EmptyGradient(). It is the same tensor until the
  // layout of the parameter changes. Undefined if the parameter has become
  // larger than its place.
  at::Tensor Gradient(size_t index, const at::Tensor& parameter);

  // The presence of a group of several gradients: one float32 per gradient.
  at::Tensor Presence(size_t group) const { return presences_[group]; }

 private:
  struct Place {
    size_t begin;
    size_t bytes;
    at::Tensor gradient;
  };

  explicit GradientArena(size_t num_groups) : presences_(num_groups) {}

  // Makes the tensor at `place` with the layout of the gradient of `parameter`.
  at::Tensor Lay(const Place& place, const at::Tensor& parameter) const;

  bool outgrown_ = false;
  collective::TensorMemory memory_;
  std::vector<Place> places_;          // by parameter
  std::vector<at::Tensor> presences_;  // by group; undefined for groups of one
};

}  // namespace hvdlite::internal
