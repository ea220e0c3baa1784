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

// A parameter and the state of its gradient.
struct GradientParameter {
  // Whether the gradient may change without a hook: the tensor got a type that
  // has gradients after the hooks were installed.
  bool Unwatched() const { return hooks == nullptr && tensor.requires_grad(); }
  // Whether this rank has a gradient to contribute to a reduction by `op`.
  bool Contributes(ReduceOp op) const;

  std::string name;
  at::Tensor tensor;
  size_t group = 0;
  // Number of backward passes since the last step() or synchronize().
  int64_t passes = 0;
  // A pass was counted at its beginning and may still run, since no hook
  // reports its end. Synchronize() reduces the gradient.
  bool unfollowed = false;
  bool in_flight = false;
  // The gradient is a reduced one and has not changed since.
  bool reduced = false;
  // The parameter was submitted without a gradient. If any rank has a gradient,
  // the result becomes the gradient.
  bool absent = false;
  // The gradient is sparse on all ranks from now on.
  bool sparse = false;
  // How many tensors may refer to the gradient's memory while it is reduced
  // there: the gradient itself and, in its hook, the temporary tensors of
  // autograd.
  size_t references = 1;
  std::unique_ptr<GradientHooks> hooks;
};

// One operation that is submitted in every step: of one parameter, or of
// several with a GradientPresence. Use it in one thread at a time.
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
  // The members that the operation reduces: all except sparse ones.
  const std::vector<size_t>& submitted() const { return submitted_; }
  PersistentCall& operation() { return operation_; }

  // Loads the operation with the present gradients. Returns false if all are
  // sparse. A gradient that `check` rejects, or that is found to be sparse,
  // becomes the operation's local error. `arena`: the memory for gradients, or
  // null. Returns the errors of PersistentCall::Load; may throw exceptions of
  // LibTorch.
  absl::StatusOr<bool> Load(std::vector<GradientParameter>& parameters,
                            GradientArena* arena, NonfiniteCheck& check,
                            uint32_t step);
  // Gives parameters without a gradient the results of other ranks. Call it
  // after success.
  void TakeResults(std::vector<GradientParameter>& parameters);

  // Whether the operation failed because some rank's gradient is sparse.
  static bool RefusedAsSparse(const absl::Status& status);
  // Returns the operation's `status` with the names of its tensors added.
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
