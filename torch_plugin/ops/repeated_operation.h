// RepeatedOperation: an operation that is submitted in every training step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/ops/pending_operation.h"

namespace hvdlite::internal {

// Costs little where its tensors look as they did the last time. A cycle of
// calls is Load or Refuse, Submit, Wait, Unload; one thread at a time.
class RepeatedOperation {
 public:
  using Tensors = PendingOperation::Tensors;

  // `request` is that of all submissions, but for its tensors.
  RepeatedOperation(std::shared_ptr<World> world, negotiation::Request request);

  // What the next submission takes; see negotiation::Operation for `absent`.
  // The tensors' memory is in memory order (SpecInMemoryOrder). Errors: as
  // Coordinator::Prepare.
  absl::Status Load(Tensors tensors, bool absent);
  // Makes the next submission fail on all ranks, for this reason. Errors: as
  // Load.
  absl::Status Refuse(std::string reason);

  // Submits all of them at once, as of this step (negotiation::Operation).
  // Errors, after which none is in flight: as Coordinator::SubmitPrepared.
  static absl::Status Submit(World& world,
                             absl::Span<RepeatedOperation* const> operations,
                             uint32_t step, Submission submission);

  const std::string& name() const { return request_.name; }

  // Blocks until it is done and returns its status. With success every tensor
  // has its result.
  absl::Status Wait();
  // Then:
  const at::Tensor& result(size_t index) const {
    return (*tensors_)[index].result;
  }
  bool absent_everywhere() const { return prepared_->absent_everywhere(); }
  // After an error: as Outcome.
  uint32_t next_step() const { return prepared_->next_step(); }

  // Lets go of the tensors.
  void Unload();

 private:
  absl::Status Prepare(negotiation::Operation operation);

  const std::shared_ptr<World> world_;
  negotiation::Request request_;
  negotiation::PreparedPtr prepared_;  // null before the first submission
  // Shared with the coordinator while it is loaded.
  std::shared_ptr<Tensors> tensors_ = std::make_shared<Tensors>();
};

}  // namespace hvdlite::internal
