#include "torch_plugin/ops/persistent_call.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "torch_plugin/ops/tensors.h"

namespace hvdlite::internal {

PersistentCall::PersistentCall(PendingOperation::Call call,
                               negotiation::Owner owner)
    : call_(std::make_shared<PendingOperation::Call>(std::move(call))),
      owner_(owner) {}

void PersistentCall::SetTensorsInMemoryOrder(
    PendingOperation::Tensors tensors) {
  negotiation::TensorSpecs& specs = call_->request.tensors;
  const bool same = std::equal(
      specs.begin(), specs.end(), tensors.begin(), tensors.end(),
      [](const negotiation::TensorSpec& spec, const OperationTensors& one) {
        return IsSpecOf(spec, one.output);
      });
  if (!same) {
    specs.clear();
    for (const OperationTensors& one : tensors) {
      specs.push_back(SpecInMemoryOrder(one.output));
    }
  }
  call_->tensors = std::move(tensors);
}

absl::Status PersistentCall::Load(World& world) {
  negotiation::Inputs inputs;
  negotiation::Outputs outputs;
  for (const OperationTensors& tensors : call_->tensors) {
    if (!call_->absent) inputs.push_back(BytesOf(tensors.input));
    outputs.push_back(BytesOf(tensors.output));
  }
  if (persistent_ != nullptr) {
    return persistent_->Load(call_->request, call_->absent, std::move(inputs),
                             std::move(outputs), call_);
  }
  negotiation::Operation operation;
  operation.request = call_->request;
  operation.absent = call_->absent;
  operation.inputs = std::move(inputs);
  operation.outputs = std::move(outputs);
  operation.keep_alive = call_;
  HVDLITE_ASSIGN_OR_RETURN(persistent_, world.coordinator().MakePersistent(
                                            std::move(operation), owner_));
  return absl::OkStatus();
}

absl::Status PersistentCall::Submit(World& world,
                                    absl::Span<PersistentCall* const> calls,
                                    Submission submission) {
  absl::InlinedVector<negotiation::PersistentPtr, 1> persistent;
  persistent.reserve(calls.size());
  for (const PersistentCall* one : calls) {
    one->persistent_->operation.step = one->call_->step;
    persistent.push_back(one->persistent_);
  }
  return world.coordinator().SubmitPersistent(
      persistent, submission == Submission::kSynchronous);
}

absl::Status PersistentCall::Deliver() {
  try {
    CopyResults(call_->tensors);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(
        "the result of '", name(), "' could not be delivered: ", error.what()));
  }
  return absl::OkStatus();
}

void PersistentCall::Release() {
  if (persistent_ != nullptr) persistent_->Release();
  // A coordinator whose world was lost keeps the tensors.
  if (call_.use_count() > 1) {
    call_ = std::make_shared<PendingOperation::Call>(
        PendingOperation::Call{.request = call_->request});
  }
  call_->tensors.clear();
  call_->rows.clear();
}

}  // namespace hvdlite::internal
