// KeptOperation: an operation that a synchronous call leaves behind for the
// next one of its name.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "negotiation/engine/operation.h"
#include "negotiation/protocol/request.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/pending_operation.h"

namespace hvdlite::internal {

// Request, prepared operation, completion and lists of tensors are made once
// for a name. For one thread at a time; belongs to one world, but does not keep
// it. Kinds: as Coordinator::Prepare.
class KeptOperation {
 public:
  // `name` as the user knows it.
  KeptOperation(std::string name, PendingOperation::Call call);

  // That of this name which the world keeps, with a call() that holds nothing
  // but memory; null: there is none.
  static std::unique_ptr<KeptOperation> Take(World& world,
                                             absl::string_view name,
                                             negotiation::ProcessSetId set);
  // Keeps it in the world for the next Take, without its tensors.
  static void Put(World& world, std::unique_ptr<KeptOperation> operation);

  const std::string& name() const { return name_; }
  // What Run() submits.
  PendingOperation::Call& call() { return *call_; }

  // Submits call(), blocks until it is done and returns its status. With
  // success its tensors have their results.
  absl::Status Run(World& world);

 private:
  absl::Status Load(World& world);

  const std::string name_;
  // Shared with the coordinator while it runs.
  const std::shared_ptr<PendingOperation::Call> call_;
  negotiation::PreparedPtr prepared_;  // null before the first Run
};

}  // namespace hvdlite::internal
