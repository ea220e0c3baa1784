// PersistentCall: an operation that is submitted many times under one name, in
// every step of an optimizer or by synchronous calls of that name.
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

// Request, persistent operation, completion and lists of tensors are made once.
// So a submission costs little. Each submission is a cycle: Load, Submit, wait
// for completion(), Deliver, Release. Use it in one thread at a time. It
// belongs to one world, but does not keep the world alive.
class PersistentCall {
 public:
  // Kinds and owners: see Coordinator::MakePersistent.
  PersistentCall(PendingOperation::Call call, negotiation::Owner owner);

  // Sets what the next submission uses. Name, process set and kind stay the
  // same. A request with a local error has no tensors.
  PendingOperation::Call& call() { return *call_; }
  const std::string& name() const { return call_->request.name; }
  // Sets the tensors that are reduced in place in memory, and their description
  // in the request (SpecInMemoryOrder).
  void SetTensorsInMemoryOrder(PendingOperation::Tensors tensors);

  // Returns the errors of Coordinator::MakePersistent.
  absl::Status Load(World& world);
  // Submits all calls together. Returns the errors of
  // Coordinator::SubmitPersistent; none of the calls is in flight then.
  static absl::Status Submit(World& world,
                             absl::Span<PersistentCall* const> calls,
                             Submission submission);

  // The completion of the last submission.
  const negotiation::Completion& completion() const { return *persistent_; }
  // Gives every tensor its result. Call it after the submission has succeeded.
  // Returns Internal if LibTorch cannot copy a result.
  absl::Status Deliver();

  // Releases the tensors.
  void Release();

 private:
  // Shared with the coordinator while it is loaded.
  std::shared_ptr<PendingOperation::Call> call_;
  const negotiation::Owner owner_;
  negotiation::PersistentPtr persistent_;  // null before the first Load
};

}  // namespace hvdlite::internal
