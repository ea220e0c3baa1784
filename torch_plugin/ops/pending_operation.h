// PendingOperation: an operation that was submitted, and its tensors.
// RepeatedOperation: one that is submitted in every training step.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite::internal {

// Whether the submitting thread goes on, or waits for the operation at once.
enum class Submission { kAsynchronous, kSynchronous };

// Thread-safe. Shared by all copies of a Work.
class PendingOperation {
 public:
  // One OperationTensors per tensor of the request.
  using Tensors = absl::InlinedVector<OperationTensors, 1>;

  // What is submitted.
  struct Call {
    negotiation::Request request;
    Tensors tensors;
    std::vector<int64_t> rows;               // see negotiation::Operation
    bool absent = false;                     // see negotiation::Operation
    at::ScalarType splits_dtype = at::kInt;  // of received_splits()
  };

  // Errors: as Coordinator::Submit.
  static absl::StatusOr<std::shared_ptr<PendingOperation>> TrySubmit(
      std::shared_ptr<World> world, Call call, Submission submission);
  // As above, but throws c10::Error.
  static std::shared_ptr<PendingOperation> Submit(std::shared_ptr<World> world,
                                                  Call call,
                                                  Submission submission);

  // Blocks until it is done and returns its status. These three throw
  // c10::Error in a process that was forked from a rank.
  absl::Status Wait();
  // Whether it is done within `timeout`.
  bool WaitFor(absl::Duration timeout);
  bool IsCompleted();

  // Once it is done with success:
  std::vector<at::Tensor> results() const;  // one per tensor
  const at::Tensor& result() const;         // of the only tensor
  // How many rows came from each member, for an allgather or alltoall.
  const negotiation::RowsByMember& rows() const { return memory_->rows; }
  // As above, of an alltoall's only tensor, as a new tensor.
  at::Tensor received_splits() const;
  bool absent_everywhere() const { return completion_->absent_everywhere(); }
  int64_t value() const { return completion_->value(); }

 private:
  // Shared with the coordinator, which writes it before the operation is done.
  struct Memory {
    // Makes the outputs of an allgather or alltoall.
    absl::StatusOr<negotiation::Outputs> Allocate(
        const negotiation::RowsByMember& arriving);

    Tensors tensors;
    negotiation::RowsByMember rows;
    at::ScalarType splits_dtype = at::kInt;
  };

  PendingOperation(std::shared_ptr<World> world,
                   std::shared_ptr<const negotiation::Completion> completion,
                   std::shared_ptr<Memory> memory);

  void Deliver();

  const std::shared_ptr<World> world_;
  const std::shared_ptr<const negotiation::Completion> completion_;
  const std::shared_ptr<Memory> memory_;
  std::once_flag delivered_;
  std::atomic<bool> asked_{false};
};

// An operation that is submitted in every training step. Costs little where its
// tensors look as they did the last time. A cycle of calls is Load or
// SetLocalError, Submit, Wait, Unload; one thread at a time.
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
  absl::Status SetLocalError(std::string reason);

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
