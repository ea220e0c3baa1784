// PendingOperation: an operation from its submission to its completion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "negotiation/engine/completion.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

class OperationTable;
class PendingOperation;
class PreparedOperation;

// The operations of one name that are pending on this rank, in the order of
// their submission. The first is negotiated; each of the others waits for the
// one ahead of it to end.
struct NameQueue {
  PendingOperation* last = nullptr;
  // The one that the application has prepared under this name, if any.
  std::weak_ptr<PreparedOperation> prepared;
};

// Its Completion is a part of it, and the only one that the application sees.
class PendingOperation : public Completion {
 public:
  PendingOperation() : Completion(/*done=*/false), prepared_(false) {}
  explicit PendingOperation(Operation submitted, bool prepared = false)
      : Completion(/*done=*/prepared),
        operation(std::move(submitted)),
        prepared_(prepared) {}

  const std::string& name() const final { return operation.request.name; }

  // While it is pending, for whoever has the role; else for the application.
  Operation operation;
  SlotHint hint;  // for whoever has the role

  int64_t submitted_ns = 0;
  int lane = 0;  // of the timeline; 0: none

 private:
  friend class OperationTable;

  const bool prepared_;
  // Under the table's lock. In the table, and where; it is completed by
  // whoever takes it out.
  bool pending_ = false;
  size_t index_ = 0;
  bool marked_urgent_ = false;
  // Its place among those of its name.
  std::shared_ptr<NameQueue> queue_;
  PendingOperation* ahead_ = nullptr;
  PendingOperation* behind_ = nullptr;

 protected:
  // The world was lost while it was pending: a batch may be on its way out, and
  // it stays as it is. Written before it is done.
  bool lost_ = false;
};

using PendingPtr = std::shared_ptr<PendingOperation>;

}  // namespace hvdlite::negotiation
