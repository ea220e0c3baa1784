// PendingOperation: a submitted operation with its tensors.
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

// Whether the submitting thread continues, or waits for the operation at once.
enum class Submission { kAsynchronous, kSynchronous };

// Thread-safe. Shared by all copies of a Work.
class PendingOperation {
 public:
  // One OperationTensors per tensor of the request.
  using Tensors = absl::InlinedVector<OperationTensors, 1>;

  // What to submit.
  struct Call {
    negotiation::Request request;
    Tensors tensors;
    std::vector<int64_t> rows;               // see negotiation::Operation
    bool absent = false;                     // see negotiation::Operation
    uint32_t step = 0;                       // see negotiation::Operation
    at::ScalarType splits_dtype = at::kInt;  // of received_splits()
  };

  // Returns the errors of Coordinator::Submit.
  static absl::StatusOr<std::shared_ptr<PendingOperation>> TrySubmit(
      std::shared_ptr<World> world, Call call, Submission submission);
  // The same, but throws c10::Error.
  static std::shared_ptr<PendingOperation> Submit(std::shared_ptr<World> world,
                                                  Call call,
                                                  Submission submission);

  // Blocks until the operation is done and returns its status. This function
  // and the next two throw c10::Error in a process that was forked from a rank.
  absl::Status Wait();
  // Whether the operation is done within `timeout`.
  bool WaitFor(absl::Duration timeout);
  bool IsCompleted();

  // These are valid after the operation has succeeded:
  std::vector<at::Tensor> results() const;  // one per tensor
  const at::Tensor& result() const;         // of the only tensor
  // How many rows each member sent, for an allgather or alltoall.
  const negotiation::RowsByMember& rows() const { return memory_->rows; }
  // The same for an alltoall's only tensor, as a new tensor.
  at::Tensor received_splits() const;
  bool absent_everywhere() const { return completion_->absent_everywhere(); }
  int64_t value() const { return completion_->value(); }

 private:
  // Shared with the coordinator, which writes it before the operation is done.
  struct Memory {
    // Allocates the outputs of an allgather or alltoall.
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

// Blocks until `completion` of this world is done and returns its status. The
// timeline shows this as WAIT.
absl::Status WaitInTimeline(World& world,
                            const negotiation::Completion& completion);

}  // namespace hvdlite::internal
