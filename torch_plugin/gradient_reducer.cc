#include "torch_plugin/gradient_reducer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <exception>

#include "absl/strings/str_cat.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/throw_status.h"
#include "torch_plugin/world_state.h"

namespace hvdlite::internal {
namespace {

// Uninitialised memory with the layout in which the parameter's gradient is
// reduced: the parameter's own, or row-major where that is not dense.
at::Tensor EmptyGradient(const at::Tensor& parameter) {
  if (!parameter.is_non_overlapping_and_dense()) {
    return at::empty(parameter.sizes(),
                     parameter.options().requires_grad(false));
  }
  return at::empty_strided(parameter.sizes(), parameter.strides(),
                           parameter.options().requires_grad(false));
}

// The tensors to reduce `gradient` with. `gradient` is used as it lies in
// memory if it lies there as the parameter does, which every rank's gradient
// then does; else it is copied there and back.
OperationTensors TensorsOf(const at::Tensor& parameter,
                           const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  if (SameLayout(gradient, parameter)) {
    return {.input = gradient, .output = gradient, .result = gradient};
  }
  const at::Tensor copy = EmptyGradient(parameter);
  copy.copy_(gradient);
  return {.input = copy, .output = copy, .result = gradient};
}

// The tensors of a rank without a gradient, which may get the others' result.
OperationTensors AbsentTensors(const at::Tensor& parameter) {
  const at::Tensor output = EmptyGradient(parameter);
  return {.input = {}, .output = output, .result = output};
}

// The world's error where there is one, since it explains the others.
void KeepFirst(absl::Status& kept, const absl::Status& status) {
  if (kept.ok() ||
      (absl::IsUnavailable(status) && !absl::IsUnavailable(kept))) {
    kept = status;
  }
}

}  // namespace

std::shared_ptr<GradientReducer> GradientReducer::Create(
    const NamedParameters& parameters, GradientReducerOptions options) {
  auto reducer =
      std::make_shared<GradientReducer>(parameters, std::move(options));
  reducer->InstallHooks();
  return reducer;
}

GradientReducer::GradientReducer(const NamedParameters& parameters,
                                 GradientReducerOptions options)
    : options_(std::move(options)) {
  for (const auto& [name, tensor] : parameters) {
    Parameter& parameter = parameters_.emplace_back();
    parameter.name = name;
    parameter.tensor = tensor;
  }
}

void GradientReducer::InstallHooks() {
  const std::weak_ptr<GradientReducer> weak = weak_from_this();
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    // One that does not require a gradient now is reduced by Synchronize() if
    // it ever has one.
    if (!parameters_[i].tensor.requires_grad()) continue;
    parameters_[i].hooks = std::make_unique<GradientHooks>(
        parameters_[i].tensor,
        [weak, i] {
          if (const auto reducer = weak.lock()) reducer->BeforeAccumulation(i);
        },
        [weak, i] {
          if (const auto reducer = weak.lock()) reducer->AfterAccumulation(i);
        });
  }
}

void GradientReducer::BeforeAccumulation(size_t index) {
  base::MutexLock lock(&mutex_);
  const Parameter& parameter = parameters_[index];
  if (parameter.state != State::kInFlight) return;
  ThrowError(absl::StrCat(
      "backward() computes a new gradient for parameter '", parameter.name,
      "' while its last one is being reduced: call step() or synchronize() "
      "first, or set backward_passes_per_step (now ",
      options_.passes_per_step, ") to the number of backward passes per step"));
}

void GradientReducer::AfterAccumulation(size_t index) {
  base::MutexLock lock(&mutex_);
  Parameter& parameter = parameters_[index];
  synchronized_ = false;
  parameter.state = State::kAccumulating;
  ++parameter.passes;
  if (parameter.passes >= options_.passes_per_step) Submit(index);
}

void GradientReducer::Submit(size_t index) {
  Parameter& parameter = parameters_[index];
  const at::Tensor gradient = parameter.tensor.grad();
  // Reduced already and not touched since: a sum must not count it again.
  const bool counted = parameter.state == State::kReduced && !options_.averages;
  parameter.absent = !gradient.defined() || counted;
  std::string refusal;
  OperationTensors tensors;
  try {
    if (parameter.absent) {
      tensors = AbsentTensors(parameter.tensor);
    } else if (gradient.layout() != at::kStrided) {
      refusal =
          "the gradient is sparse, which is not supported yet; construct the "
          "embedding with sparse(false)";
    } else {
      tensors = TensorsOf(parameter.tensor, gradient);
    }
    if (!refusal.empty()) tensors = AbsentTensors(parameter.tensor);
    negotiation::Request request = options_.request;
    request.name =
        absl::StrCat(options_.name_prefix, ".allreduce.", parameter.name);
    request.dtype = DataTypeOf(tensors.output);
    request.shape = tensors.output.sizes().vec();
    request.strides = CanonicalStrides(tensors.output);
    request.refusal = refusal;
    absl::StatusOr<std::shared_ptr<PendingOperation>> operation =
        PendingOperation::TrySubmit(CurrentWorld(), std::move(request),
                                    std::move(tensors),
                                    Submission::kAsynchronous);
    if (!operation.ok()) {
      KeepFirst(kept_error_, operation.status());
      return;
    }
    parameter.operation = *std::move(operation);
    parameter.state = State::kInFlight;
    in_flight_.push_back(index);
  } catch (const std::exception& error) {
    KeepFirst(kept_error_, absl::InternalError(absl::StrCat(
                               "the gradient of parameter '", parameter.name,
                               "' could not be submitted: ", error.what())));
  }
}

std::vector<size_t> GradientReducer::SubmitAll() {
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].state != State::kInFlight) Submit(i);
  }
  return std::exchange(in_flight_, {});
}

absl::Status GradientReducer::Synchronize() {
  const std::vector<size_t> submitted = SubmitAll();
  std::vector<std::shared_ptr<PendingOperation>> operations;
  {
    base::MutexLock lock(&mutex_);
    for (const size_t index : submitted) {
      operations.push_back(parameters_[index].operation);
    }
  }
  // Waiting for the last one first marks everything as awaited at once, so that
  // the rest goes in as few batches as possible.
  std::vector<absl::Status> statuses(operations.size());
  for (size_t i = operations.size(); i-- > 0;) {
    statuses[i] = operations[i]->Wait();
  }

  base::MutexLock lock(&mutex_);
  absl::Status status = std::exchange(kept_error_, absl::OkStatus());
  for (size_t i = 0; i < submitted.size(); ++i) {
    KeepFirst(status, statuses[i]);
    Parameter& parameter = parameters_[submitted[i]];
    if (statuses[i].ok() && parameter.absent &&
        !operations[i]->absent_everywhere()) {
      parameter.tensor.mutable_grad() = operations[i]->result();
    }
    parameter.operation = nullptr;
  }
  SetAll(status.ok() ? State::kReduced : State::kIdle);
  synchronized_ = status.ok();
  return status;
}

bool GradientReducer::synchronized() const {
  base::MutexLock lock(&mutex_);
  return synchronized_;
}

void GradientReducer::FinishStep() {
  base::MutexLock lock(&mutex_);
  SetAll(State::kIdle);
  synchronized_ = false;
}

void GradientReducer::Abandon() {
  bool busy = false;
  {
    base::MutexLock lock(&mutex_);
    busy = !in_flight_.empty();
  }
  // Submits the rest, too: another rank may have it in flight.
  if (busy) Synchronize().IgnoreError();
  base::MutexLock lock(&mutex_);
  kept_error_ = absl::OkStatus();
  SetAll(State::kIdle);
  synchronized_ = false;
}

void GradientReducer::SetAll(State state) {
  for (Parameter& parameter : parameters_) {
    parameter.state = state;
    parameter.passes = 0;
  }
}

}  // namespace hvdlite::internal
