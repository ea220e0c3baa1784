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
        "no memory could be allocated for the received data: ", error.what()));
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
  operation.step = call.step;
  for (const OperationTensors& tensors : memory->tensors) {
    if (tensors.input.defined()) {
      operation.inputs.push_back(BytesOf(tensors.input));
    }
    if (tensors.output.defined()) {
      operation.outputs.push_back(BytesOf(tensors.output));
    }
  }
  if (call.request.rows_differ()) {
    // keep_alive lives longer than this.
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
  absl::Status status = WaitInTimeline(*world_, *completion_);
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
    // Ask only once: asking again would disturb the thread that coordinates.
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

absl::Status WaitInTimeline(World& world,
                            const negotiation::Completion& completion) {
  std::optional<TraceSpan> span;
  std::optional<timeline::StepMeter::Wait> wait;
  if (!completion.done() && world.recorder() != nullptr) {
    span.emplace("WAIT");
    wait.emplace(world.step_meter());
  }
  return world.coordinator().Wait(completion);
}

}  // namespace internal

// Functions that hvdlite/work.h declares.

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
