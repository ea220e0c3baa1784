// PersistentCall: an operation that is submitted again and again under one
// name, by an optimizer in every step or by the synchronous calls of that name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "negotiation/engine/operation.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"

namespace hvdlite::internal {

// Request, persistent operation, completion and lists of tensors are made once,
// so that a submission costs little. A cycle of calls is Load, Submit, a wait
// for completion(), Deliver, Release; one thread at a time. Belongs to one
// world, but does not keep it.
class PersistentCall {
 public:
  // Kinds and owners: as Coordinator::MakePersistent.
  PersistentCall(PendingOperation::Call call, negotiation::Owner owner);

  // What the next submission takes; its name, process set and kind stay. With a
  // local error it has no tensors.
  PendingOperation::Call& call() { return *call_; }
  const std::string& name() const { return call_->request.name; }
  // Sets the tensors that are reduced where they lie in memory, and what the
  // request tells of them (SpecInMemoryOrder).
  void SetTensorsInMemoryOrder(PendingOperation::Tensors tensors);

  // Errors: as Coordinator::MakePersistent.
  absl::Status Load(World& world);
  // Submits all of them at once. Errors, after which none is in flight: as
  // Coordinator::SubmitPersistent.
  static absl::Status Submit(World& world,
                             absl::Span<PersistentCall* const> calls,
                             Submission submission);

  // Of the last submission.
  const negotiation::Completion& completion() const { return *persistent_; }
  // Once that is done with success: gives every tensor its result. Errors:
  // Internal where LibTorch cannot copy one.
  absl::Status Deliver();

  // Lets go of the tensors.
  void Release();

 private:
  // Shared with the coordinator while it is loaded.
  std::shared_ptr<PendingOperation::Call> call_;
  const negotiation::Owner owner_;
  negotiation::PersistentPtr persistent_;  // null before the first Load
};

}  // namespace hvdlite::internal
