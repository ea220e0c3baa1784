#include "torch_plugin/ops/pending_operation.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/timeline.h>
#include <hvdlite/work.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace internal {
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

PendingOperation::PendingOperation(
    std::shared_ptr<World> world,
    std::shared_ptr<const negotiation::Completion> completion,
    std::shared_ptr<Memory> memory)
    : world_(std::move(world)),
      completion_(std::move(completion)),
      memory_(std::move(memory)) {}

absl::StatusOr<negotiation::Outputs> PendingOperation::Memory::Allocate(
    const negotiation::RowsByMember& arriving) {
  try {
    rows = arriving;
    negotiation::Outputs outputs;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor& input = tensors[i].input;
      std::vector<int64_t> shape = input.sizes().vec();
      shape.front() =
          std::accumulate(rows[i].begin(), rows[i].end(), int64_t{0});
      tensors[i].output = at::empty(shape, input.options());
      tensors[i].result = tensors[i].output;
      outputs.push_back(BytesOf(tensors[i].output));
    }
    return outputs;
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory could be allocated for what arrives: ", error.what()));
  }
}

absl::StatusOr<std::shared_ptr<PendingOperation>> PendingOperation::TrySubmit(
    std::shared_ptr<World> world, Call call, Submission submission) {
  auto memory = std::make_shared<Memory>();
  memory->tensors = std::move(call.tensors);
  memory->splits_dtype = call.splits_dtype;
  negotiation::Operation operation;
  operation.caller_waits = submission == Submission::kSynchronous;
  operation.absent = call.absent;
  for (const OperationTensors& tensors : memory->tensors) {
    if (tensors.input.defined()) {
      operation.inputs.push_back(BytesOf(tensors.input));
    }
    if (tensors.output.defined()) {
      operation.outputs.push_back(BytesOf(tensors.output));
    }
  }
  if (call.request.rows_differ()) {
    // keep_alive outlives it.
    operation.allocate =
        [allocated = memory.get()](const negotiation::RowsByMember& rows) {
          return allocated->Allocate(rows);
        };
  }
  operation.rows = std::move(call.rows);
  operation.request = std::move(call.request);
  operation.keep_alive = memory;
  HVDLITE_ASSIGN_OR_RETURN(
      std::shared_ptr<const negotiation::Completion> completion,
      world->coordinator().Submit(std::move(operation)));
  return std::shared_ptr<PendingOperation>(new PendingOperation(
      std::move(world), std::move(completion), std::move(memory)));
}

std::shared_ptr<PendingOperation> PendingOperation::Submit(
    std::shared_ptr<World> world, Call call, Submission submission) {
  return ValueOrThrow(TrySubmit(std::move(world), std::move(call), submission));
}

absl::Status PendingOperation::Wait() {
  ThrowIfForked();
  std::optional<TraceSpan> span;
  std::optional<timeline::StepMeter::Wait> wait;
  if (!completion_->done() && world_->recorder() != nullptr) {
    span.emplace("WAIT");
    wait.emplace(world_->step_meter());
  }
  absl::Status status = world_->coordinator().Wait(*completion_);
  if (status.ok()) Deliver();
  return status;
}

bool PendingOperation::WaitFor(absl::Duration timeout) {
  ThrowIfForked();
  if (!world_->coordinator().WaitFor(*completion_, timeout)) return false;
  if (completion_->status().ok()) Deliver();
  return true;
}

bool PendingOperation::IsCompleted() {
  ThrowIfForked();
  if (!completion_->done()) {
    // Once is enough: asking again would only disturb who coordinates.
    if (!asked_.exchange(true)) {
      world_->coordinator().WaitFor(*completion_, absl::ZeroDuration());
    }
    return false;
  }
  if (completion_->status().ok()) Deliver();
  return true;
}

void PendingOperation::Deliver() {
  for (const OperationTensors& tensors : memory_->tensors) {
    if (tensors.result.is_same(tensors.output)) continue;
    std::call_once(delivered_, [this] { CopyResults(memory_->tensors); });
    return;
  }
}

std::vector<at::Tensor> PendingOperation::results() const {
  return ResultsOf(memory_->tensors);
}

const at::Tensor& PendingOperation::result() const {
  return memory_->tensors.front().result;
}

at::Tensor PendingOperation::received_splits() const {
  return at::tensor(memory_->rows.front(),
                    at::TensorOptions().dtype(memory_->splits_dtype));
}

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

absl::Status RepeatedOperation::SetLocalError(std::string reason) {
  tensors_->clear();
  if (prepared_ != nullptr) {
    prepared_->SetLocalError(std::move(reason));
    return absl::OkStatus();
  }
  negotiation::Operation operation;
  operation.request = request_;
  operation.request.local_error = std::move(reason);
  return Prepare(std::move(operation));
}

absl::Status RepeatedOperation::Prepare(negotiation::Operation operation) {
  HVDLITE_ASSIGN_OR_RETURN(prepared_,
                           world_->coordinator().Prepare(std::move(operation)));
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
  return world.coordinator().SubmitPrepared(
      prepared, submission == Submission::kSynchronous);
}

absl::Status RepeatedOperation::Wait() {
  absl::Status status = world_->coordinator().Wait(*prepared_);
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

}  // namespace internal

// What hvdlite/work.h declares.

Work::Work(std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

at::Tensor Work::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return operation_->result();
}

bool Work::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool Work::is_completed() const { return operation_->IsCompleted(); }

GroupWork::GroupWork(std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

std::vector<at::Tensor> GroupWork::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return operation_->results();
}

bool GroupWork::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool GroupWork::is_completed() const { return operation_->IsCompleted(); }

AlltoallWork::AlltoallWork(
    std::shared_ptr<internal::PendingOperation> operation)
    : operation_(std::move(operation)) {}

std::tuple<at::Tensor, at::Tensor> AlltoallWork::wait() const {
  internal::ThrowIfError(operation_->Wait());
  return {operation_->result(), operation_->received_splits()};
}

bool AlltoallWork::wait_for(std::chrono::milliseconds timeout) const {
  return operation_->WaitFor(absl::FromChrono(timeout));
}

bool AlltoallWork::is_completed() const { return operation_->IsCompleted(); }

}  // namespace hvdlite
