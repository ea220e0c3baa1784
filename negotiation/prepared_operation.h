// PreparedOperation: an operation that is submitted again and again.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "negotiation/operation_memory.h"
#include "negotiation/pending_operation.h"

namespace hvdlite::negotiation {

// Made by Coordinator::Prepare, which has looked at name and request: both stay
// as they are. Its memory can change between submissions. As a Completion it
// tells about the last submission; before the first it is done.
//
// While it is done it belongs to the application, one thread at a time; from
// its submission until it is done to the coordinator. Its memory is not
// released on completion, but with it or by the next Bind.
class PreparedOperation final : public PendingOperation {
 public:
  PreparedOperation(Operation operation, const OperationTable* table)
      : PendingOperation(std::move(operation), /*prepared=*/true),
        table_(table) {}

  // The memory of the submissions that follow; as in Operation. Of absent ones
  // `inputs` is empty. Errors: InvalidArgument for spans that do not fit the
  // request; the former ones stay then.
  absl::Status Bind(Inputs inputs, Outputs outputs, bool absent,
                    std::shared_ptr<void> keep_alive) {
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

  // Releases the memory and its owner; Bind must follow.
  void Release() {
    operation.inputs.clear();
    operation.outputs.clear();
    operation.keep_alive.reset();
    bound_ = false;
  }
  bool bound() const { return bound_; }

  // Whose it is.
  const OperationTable* table() const { return table_; }

 private:
  const OperationTable* const table_;
  bool bound_ = true;
};

using PreparedPtr = std::shared_ptr<PreparedOperation>;

}  // namespace hvdlite::negotiation
