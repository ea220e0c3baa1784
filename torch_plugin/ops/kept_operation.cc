#include "torch_plugin/ops/kept_operation.h"

#include <hvdlite/timeline.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "torch_plugin/ops/kept_by_name.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite::internal {
namespace {

// Of a world, at most: some times as many as the automatic names of a kind.
constexpr size_t kMaxKept = 256;

using KeptOperations = KeptByName<KeptOperation>;

KeptOperations& KeptOf(World& world) {
  return *static_cast<KeptOperations*>(world.Companion(
      [] { return std::make_shared<KeptOperations>(kMaxKept); }));
}

// As a new one, but with the memory that it has.
void Clear(negotiation::Request& request) {
  negotiation::Request cleared;
  cleared.name = std::move(request.name);
  cleared.process_set = request.process_set;
  cleared.tensors = std::move(request.tensors);
  request = std::move(cleared);
}

}  // namespace

KeptOperation::KeptOperation(std::string name, PendingOperation::Call call)
    : name_(std::move(name)),
      call_(std::make_shared<PendingOperation::Call>(std::move(call))) {}

std::unique_ptr<KeptOperation> KeptOperation::Take(
    World& world, absl::string_view name, negotiation::ProcessSetId set) {
  return KeptOf(world).Take(name, set);
}

void KeptOperation::Put(World& world,
                        std::unique_ptr<KeptOperation> operation) {
  // A coordinator whose world was lost keeps the tensors.
  if (operation->call_.use_count() > 1) return;
  operation->call_->tensors.clear();
  operation->call_->rows.clear();
  Clear(operation->call_->request);
  const KeptOperation& kept = *operation;
  KeptOf(world).Put(kept.name_, kept.call_->request.process_set,
                    std::move(operation));
}

absl::Status KeptOperation::Load(World& world) {
  const negotiation::Request& request = call_->request;
  negotiation::Inputs inputs;
  negotiation::Outputs outputs;
  for (const OperationTensors& tensors : call_->tensors) {
    inputs.push_back(BytesOf(tensors.input));
    outputs.push_back(BytesOf(tensors.output));
  }
  if (prepared_ != nullptr) {
    // A local error takes the place of memory, and is to be set each time.
    if (!request.local_error.empty() ||
        prepared_->operation.request != request) {
      prepared_->Replace(request);
    }
    if (!request.local_error.empty()) return absl::OkStatus();
    return prepared_->Bind(std::move(inputs), std::move(outputs),
                           /*absent=*/false, call_);
  }
  negotiation::Operation operation;
  operation.request = request;
  operation.inputs = std::move(inputs);
  operation.outputs = std::move(outputs);
  operation.keep_alive = call_;
  HVDLITE_ASSIGN_OR_RETURN(prepared_,
                           world.coordinator().Prepare(
                               std::move(operation), negotiation::Owner::kAny));
  return absl::OkStatus();
}

absl::Status KeptOperation::Run(World& world) {
  absl::Status status = Load(world);
  if (status.ok()) {
    status = world.coordinator().SubmitPrepared({&prepared_, 1},
                                                /*caller_waits=*/true);
  }
  if (status.ok()) {
    std::optional<TraceSpan> span;
    std::optional<timeline::StepMeter::Wait> wait;
    if (!prepared_->done() && world.recorder() != nullptr) {
      span.emplace("WAIT");
      wait.emplace(world.step_meter());
    }
    status = world.coordinator().Wait(*prepared_);
  }
  if (prepared_ != nullptr) prepared_->Release();
  if (status.ok()) CopyResults(call_->tensors);
  return status;
}

}  // namespace hvdlite::internal
