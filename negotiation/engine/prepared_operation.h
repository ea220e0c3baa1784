// PreparedOperation: an operation that is submitted again and again.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "negotiation/engine/operation_memory.h"
#include "negotiation/engine/pending_operation.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

// Made by Coordinator::Prepare, which has looked at name and request. Its
// memory can change between submissions. As a Completion it tells about the
// last submission; before the first it is done.
//
// While it is done it belongs to the application, one thread at a time; from
// its submission until it is done to the coordinator. Its memory is not
// released on completion, but with it, by Release or by the next Bind. One that
// was pending when the world was lost stays as it is; nothing more is submitted
// then anyway.
class PreparedOperation final
    : public PendingOperation,
      public std::enable_shared_from_this<PreparedOperation> {
 public:
  PreparedOperation(Operation operation, const OperationTable* table)
      : PendingOperation(std::move(operation), /*prepared=*/true),
        table_(table) {}

  // The memory of the submissions that follow; as in Operation. Of absent ones
  // `inputs` is empty. Ends a refusal. Errors: InvalidArgument for spans that
  // do not fit the request; the former ones stay then.
  absl::Status Bind(Inputs inputs, Outputs outputs, bool absent,
                    std::shared_ptr<void> keep_alive) {
    if (lost_) return absl::OkStatus();
    if (!operation.request.refusal.empty()) {
      operation.request.refusal.clear();
      hint = {};
      bound_ = false;
    }
    std::swap(operation.inputs, inputs);
    std::swap(operation.outputs, outputs);
    std::swap(operation.absent, absent);
    absl::Status status = CheckMemory(operation);
    if (status.ok()) {
      operation.keep_alive = std::move(keep_alive);
      bound_ = true;
    } else {
      std::swap(operation.inputs, inputs);
      std::swap(operation.outputs, outputs);
      std::swap(operation.absent, absent);
    }
    return status;
  }

  // The submissions that follow are of other tensors; Bind must follow.
  void Reshape(TensorSpecs tensors) {
    if (lost_) return;
    Release();
    operation.request.tensors = std::move(tensors);
    hint = {};
  }

  // The submissions that follow, until Bind, are refusals: they fail on every
  // rank, for this reason.
  void Refuse(std::string reason) {
    if (lost_) return;
    Release();
    operation.request.refusal = std::move(reason);
    operation.absent = false;
    hint = {};
    bound_ = true;
  }

  // Releases the memory and its owner; Bind must follow.
  void Release() {
    if (lost_) return;
    operation.inputs.clear();
    operation.outputs.clear();
    operation.keep_alive.reset();
    bound_ = false;
  }
  bool bound() const { return bound_; }

 private:
  friend class OperationTable;

  const OperationTable* const table_;  // whose it is
  bool bound_ = true;
};

using PreparedPtr = std::shared_ptr<PreparedOperation>;

}  // namespace hvdlite::negotiation
