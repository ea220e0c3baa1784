// GradientGroup: gradients that one operation reduces together.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/ops.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/persistent_call.h"
#include "torch_plugin/optimizer/gradient_hooks.h"
#include "torch_plugin/optimizer/gradient_tensors.h"
#include "torch_plugin/optimizer/nonfinite_check.h"

namespace hvdlite::internal {

// A parameter, and how far its gradient is.
struct GradientParameter {
  // Whether the gradient may change without a hook: since hooks were installed
  // the tensor has got a type that has gradients.
  bool Unwatched() const { return hooks == nullptr && tensor.requires_grad(); }
  // Whether this rank has a gradient to contribute to a reduction by `op`.
  bool Contributes(ReduceOp op) const;

  std::string name;
  at::Tensor tensor;
  size_t group = 0;
  // Backward passes since the last step or synchronize().
  int64_t passes = 0;
  // One of them was counted as it began, and may be going on: nothing tells
  // when it ends, and Synchronize() reduces the gradient.
  bool unfollowed = false;
  bool in_flight = false;
  // The gradient is a result, and has not changed since.
  bool reduced = false;
  // Submitted without a gradient; the result becomes the gradient if any rank
  // has one.
  bool absent = false;
  // On all ranks for ever.
  bool sparse = false;
  // How many tensors may refer to the gradient's memory while it is reduced
  // there: itself, and in its hook what autograd made it of and drops then.
  size_t references = 1;
  std::unique_ptr<GradientHooks> hooks;
};

// One operation, submitted in every step: of one parameter, or of several with
// a GradientPresence. One thread at a time.
class GradientGroup {
 public:
  struct Options {
    std::shared_ptr<World> world;
    AllreduceOptions allreduce;  // op, compression, scales and process set
    negotiation::Request request;
    std::vector<size_t> members;  // indices of parameters
    bool sparse_as_dense = false;
  };
  explicit GradientGroup(Options options);

  const std::vector<size_t>& members() const { return options_.members; }
  // Those that the operation reduces: all but the sparse ones.
  const std::vector<size_t>& submitted() const { return submitted_; }
  PersistentCall& operation() { return operation_; }

  // Loads the operation with the gradients as they are; false: all are sparse.
  // A gradient that `check` refuses, or that turns out to be sparse, becomes
  // the operation's local error. `arena`: null, or where gradients are to lie.
  // Errors: as PersistentCall::Load; may throw as LibTorch.
  absl::StatusOr<bool> Load(std::vector<GradientParameter>& parameters,
                            GradientArena* arena, NonfiniteCheck& check,
                            uint32_t step);
  // Gives parameters without a gradient those of other ranks. After success.
  void TakeResults(std::vector<GradientParameter>& parameters);

  // Whether the operation failed since some rank's gradient is sparse.
  static bool RefusedAsSparse(const absl::Status& status);
  // `status` of the operation, with the names of its tensors.
  absl::Status Explain(const absl::Status& status,
                       const std::vector<GradientParameter>& parameters) const;

 private:
  std::string MakeDense(const GradientParameter& parameter,
                        const at::Tensor& place) const;
  void MakePresence(const std::vector<GradientParameter>& parameters,
                    GradientArena* arena);

  const Options options_;
  PersistentCall operation_;
  std::vector<size_t> submitted_;
  std::optional<GradientPresence> presence_;
};

}  // namespace hvdlite::internal
