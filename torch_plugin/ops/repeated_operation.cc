#include "torch_plugin/ops/repeated_operation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "torch_plugin/ops/tensor_checks.h"

namespace hvdlite::internal {
namespace {

bool AreSpecsOf(const negotiation::TensorSpecs& specs,
                const RepeatedOperation::Tensors& tensors) {
  return std::equal(
      specs.begin(), specs.end(), tensors.begin(), tensors.end(),
      [](const negotiation::TensorSpec& spec, const OperationTensors& one) {
        return IsSpecOf(spec, one.output);
      });
}

negotiation::TensorSpecs SpecsOf(const RepeatedOperation::Tensors& tensors) {
  negotiation::TensorSpecs specs;
  specs.reserve(tensors.size());
  for (const OperationTensors& one : tensors) {
    specs.push_back(SpecInMemoryOrder(one.output));
  }
  return specs;
}

}  // namespace

RepeatedOperation::RepeatedOperation(std::shared_ptr<World> world,
                                     negotiation::Request request)
    : world_(std::move(world)), request_(std::move(request)) {}

absl::Status RepeatedOperation::Load(Tensors tensors, bool absent) {
  *tensors_ = std::move(tensors);
  negotiation::Inputs inputs;
  negotiation::Outputs outputs;
  for (const OperationTensors& one : *tensors_) {
    if (!absent) inputs.push_back(BytesOf(one.input));
    outputs.push_back(BytesOf(one.output));
  }
  if (prepared_ != nullptr) {
    if (!AreSpecsOf(prepared_->operation.request.tensors, *tensors_)) {
      prepared_->Reshape(SpecsOf(*tensors_));
    }
    return prepared_->Bind(std::move(inputs), std::move(outputs), absent,
                           tensors_);
  }
  negotiation::Operation operation;
  operation.request = request_;
  operation.request.tensors = SpecsOf(*tensors_);
  operation.absent = absent;
  operation.inputs = std::move(inputs);
  operation.outputs = std::move(outputs);
  operation.keep_alive = tensors_;
  return Prepare(std::move(operation));
}

absl::Status RepeatedOperation::Refuse(std::string reason) {
  tensors_->clear();
  if (prepared_ != nullptr) {
    prepared_->Refuse(std::move(reason));
    return absl::OkStatus();
  }
  negotiation::Operation operation;
  operation.request = request_;
  operation.request.refusal = std::move(reason);
  return Prepare(std::move(operation));
}

absl::Status RepeatedOperation::Prepare(negotiation::Operation operation) {
  HVDLITE_ASSIGN_OR_RETURN(prepared_, world_->Prepare(std::move(operation)));
  return absl::OkStatus();
}

absl::Status RepeatedOperation::Submit(
    World& world, absl::Span<RepeatedOperation* const> operations,
    uint32_t step, Submission submission) {
  absl::InlinedVector<negotiation::PreparedPtr, 1> prepared;
  prepared.reserve(operations.size());
  for (const RepeatedOperation* operation : operations) {
    operation->prepared_->operation.step = step;
    prepared.push_back(operation->prepared_);
  }
  return world.SubmitPrepared(prepared, submission == Submission::kSynchronous);
}

absl::Status RepeatedOperation::Wait() {
  absl::Status status = world_->Wait(*prepared_);
  if (!status.ok()) return status;
  try {
    CopyResults(*tensors_);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(
        "the result of '", name(), "' could not be delivered: ", error.what()));
  }
  return absl::OkStatus();
}

void RepeatedOperation::Unload() {
  if (prepared_ != nullptr) prepared_->Release();
  // A coordinator whose world was lost keeps them.
  if (tensors_.use_count() > 1) tensors_ = std::make_shared<Tensors>();
  tensors_->clear();
}

}  // namespace hvdlite::internal
