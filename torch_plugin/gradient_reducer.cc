#include "torch_plugin/gradient_reducer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "torch_plugin/process_set_state.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// In the refusals of operations that all ranks then repeat without the sparse
// gradients.
constexpr char kIsSparse[] = "has a sparse gradient, to be reduced by itself";

bool RefusedAsSparse(const absl::Status& status) {
  return absl::StrContains(status.message(), kIsSparse);
}

absl::Status SubmissionError(const std::exception& error,
                             const std::string& name) {
  return absl::InternalError(absl::StrCat(
      "gradients could not be submitted as '", name, "': ", error.what()));
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
  in_flight_.reserve(options_.groups.size());
  for (size_t i = 0; i < options_.groups.size(); ++i) {
    Group& group = groups_.emplace_back();
    group.members = options_.groups[i];
    for (const size_t index : group.members) parameters_[index].group = i;
    negotiation::Request request = options_.request;
    request.name = NameInSet(
        group.members.size() == 1
            ? absl::StrCat(options_.name_prefix, ".allreduce.",
                           parameters_[group.members.front()].name)
            : absl::StrCat(options_.name_prefix, ".grouped_allreduce.", i),
        request.process_set);
    group.operation =
        std::make_unique<RepeatedOperation>(options_.world, std::move(request));
  }
}

// A parameter that does not require a gradient now gets its hooks when it does.
// Until then Synchronize() reduces what gradient it may have.
void GradientReducer::InstallHooks() {
  const std::weak_ptr<GradientReducer> weak = weak_from_this();
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    if (parameter.hooks != nullptr || !parameter.tensor.requires_grad()) {
      continue;
    }
    parameter.hooks = std::make_unique<GradientHooks>(
        parameter.tensor,
        [weak, i] {
          if (const auto reducer = weak.lock()) reducer->BeforeAccumulation(i);
        },
        [weak, i](const at::Tensor& accumulated) {
          if (const auto reducer = weak.lock()) {
            reducer->AfterAccumulation(i, accumulated);
          }
        });
  }
}

void GradientReducer::BeforeAccumulation(size_t index) {
  base::MutexLock lock(&mutex_);
  const Parameter& parameter = parameters_[index];
  if (!parameter.in_flight && parameter.passes < options_.passes_per_step) {
    return;
  }
  ThrowError(absl::StrCat(
      "backward() computes a new gradient for parameter '", parameter.name,
      "' while its last one is being reduced: call step() or synchronize() "
      "first, or set backward_passes_per_step (now ",
      options_.passes_per_step, ") to the number of backward passes per step"));
}

void GradientReducer::AfterAccumulation(size_t index,
                                        const at::Tensor& accumulated) {
  base::MutexLock lock(&mutex_);
  Parameter& parameter = parameters_[index];
  synchronized_ = false;
  parameter.reduced = false;
  ++parameter.passes;
  // Synchronize() reduces it; its group does not wait for it.
  if (parameter.sparse) return;
  const Group& group = groups_[parameter.group];
  for (const size_t member : group.members) {
    if (!Complete(parameters_[member])) return;
  }
  parameter.references = ReferencesInHook(parameter.tensor.grad(), accumulated);
  const absl::Cleanup reset = [&] { parameter.references = 1; };
  Submit({parameter.group}, Submission::kAsynchronous);
}

bool GradientReducer::Complete(const Parameter& parameter) const {
  return parameter.sparse || parameter.passes >= options_.passes_per_step ||
         !parameter.tensor.requires_grad();
}

bool GradientReducer::Contributes(const Parameter& parameter) const {
  // Reduced already and not touched since: a sum must not count it again.
  const bool counted =
      parameter.reduced && options_.allreduce.op() == ReduceOp::Sum;
  return parameter.tensor.grad().defined() && !counted;
}

at::Tensor GradientReducer::PlaceOf(size_t index) const {
  if (options_.arena == nullptr) return {};
  return options_.arena->Gradient(index, parameters_[index].tensor);
}

std::string GradientReducer::MakeDense(size_t index) {
  const Parameter& parameter = parameters_[index];
  if (parameter.tensor.grad().layout() == at::kStrided) return "";
  const at::Tensor gradient = parameter.tensor.grad();
  if (gradient.layout() != at::kSparse) {
    return absl::StrCat("the gradient of parameter '", parameter.name,
                        "' is neither dense nor sparse (COO)");
  }
  if (options_.sparse_as_dense) {
    const at::Tensor place = PlaceOf(index);
    const at::Tensor dense =
        place.defined() ? place : EmptyGradient(parameter.tensor);
    dense.copy_(gradient.to_dense());
    parameter.tensor.mutable_grad() = dense;
    return "";
  }
  if (options_.allreduce.op() == ReduceOp::Adasum) {
    return absl::StrCat(
        "parameter '", parameter.name,
        "' has a sparse gradient, which op Adasum does not take; set "
        "sparse_as_dense(true), use op Average, or construct the embedding "
        "with sparse(false)");
  }
  return absl::StrCat("parameter '", parameter.name, "' ", kIsSparse);
}

OperationTensors GradientReducer::TensorsOf(size_t index,
                                            bool operation_absent) {
  const Parameter& parameter = parameters_[index];
  const at::Tensor place = PlaceOf(index);
  if (!operation_absent && !parameter.absent) {
    if (place.defined()) MoveGradient(parameter.tensor, place);
    return PresentGradient(parameter.tensor, parameter.tensor.grad(),
                           parameter.references);
  }
  // A gradient that is not to count again keeps its place.
  const at::Tensor memory =
      place.defined() && !parameter.tensor.grad().defined()
          ? place
          : EmptyGradient(parameter.tensor);
  return operation_absent ? AbsentGradient(memory) : ZeroGradient(memory);
}

absl::StatusOr<bool> GradientReducer::Load(Group& group) {
  group.submitted.clear();
  std::string refusal;
  bool absent = true;
  for (const size_t index : group.members) {
    Parameter& parameter = parameters_[index];
    if (parameter.sparse) continue;
    group.submitted.push_back(index);
    parameter.absent = !Contributes(parameter);
    if (parameter.absent) continue;
    absent = false;
    std::string problem = MakeDense(index);
    if (refusal.empty()) refusal = std::move(problem);
  }
  if (group.submitted.empty()) return false;
  if (!refusal.empty()) {
    HVDLITE_RETURN_IF_ERROR(group.operation->Refuse(std::move(refusal)));
    return true;
  }
  RepeatedOperation::Tensors tensors;
  for (const size_t index : group.submitted) {
    tensors.push_back(TensorsOf(index, absent));
  }
  if (group.members.size() > 1) {
    MakePresence(group);
    for (OperationTensors& one : group.presence->Tensors(absent)) {
      tensors.push_back(std::move(one));
    }
  }
  HVDLITE_RETURN_IF_ERROR(group.operation->Load(std::move(tensors), absent));
  return true;
}

void GradientReducer::MakePresence(Group& group) {
  std::vector<bool> present;
  for (const size_t index : group.submitted) {
    present.push_back(!parameters_[index].absent);
  }
  // Travels as 1, whatever the scale.
  const auto unit =
      static_cast<float>(1.0 / options_.allreduce.prescale_factor());
  const auto count = static_cast<int64_t>(present.size());
  const at::Tensor memory =
      options_.arena == nullptr
          ? at::empty({count}, at::kFloat)
          : options_.arena->Presence(parameters_[group.members.front()].group)
                .narrow(0, 0, count);
  group.presence.emplace(
      memory, present, unit,
      /*each_by_itself=*/options_.allreduce.op() == ReduceOp::Adasum);
}

bool GradientReducer::TryLoad(Group& group) {
  absl::StatusOr<bool> loaded;
  try {
    loaded = Load(group);
  } catch (const std::exception& error) {
    loaded = SubmissionError(error, group.operation->name());
  }
  if (!loaded.ok()) KeepFirst(kept_error_, loaded.status());
  return loaded.ok() && *loaded;
}

void GradientReducer::Submit(absl::Span<const size_t> groups,
                             Submission submission) {
  const at::NoGradGuard no_grad;
  absl::InlinedVector<size_t, 1> loaded;
  absl::InlinedVector<RepeatedOperation*, 1> operations;
  for (const size_t index : groups) {
    Group& group = groups_[index];
    if (group.in_flight || !TryLoad(group)) continue;
    loaded.push_back(index);
    operations.push_back(group.operation.get());
  }
  absl::Status status;
  try {
    status = RepeatedOperation::Submit(*options_.world, operations, submission);
  } catch (const std::exception& error) {
    status = SubmissionError(error, operations.front()->name());
  }
  if (!status.ok()) {
    KeepFirst(kept_error_, status);
    for (RepeatedOperation* operation : operations) operation->Unload();
    return;
  }
  for (const size_t index : loaded) {
    in_flight_.push_back(index);
    groups_[index].in_flight = true;
    for (const size_t member : groups_[index].submitted) {
      parameters_[member].in_flight = true;
    }
  }
}

std::vector<size_t> GradientReducer::Reduce(const std::vector<size_t>& groups,
                                            absl::Status& status) {
  std::vector<size_t> in_flight;
  std::vector<RepeatedOperation*> operations;
  {
    base::MutexLock lock(&mutex_);
    Submit(groups, Submission::kSynchronous);
    in_flight = std::exchange(in_flight_, {});
    operations.reserve(in_flight.size());
    for (const size_t index : in_flight) {
      operations.push_back(groups_[index].operation.get());
    }
  }
  // Waiting for the last one first marks everything as awaited at once, so that
  // the rest goes in as few batches as possible.
  std::vector<absl::Status> statuses(operations.size());
  for (size_t i = operations.size(); i-- > 0;) {
    statuses[i] = operations[i]->Wait();
  }

  // Ranks submit in different orders, but are to report the same error.
  std::vector<size_t> order(in_flight.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return in_flight[left] < in_flight[right];
  });
  base::MutexLock lock(&mutex_);
  std::vector<size_t> refused;
  for (const size_t i : order) {
    Group& group = groups_[in_flight[i]];
    group.in_flight = false;
    for (const size_t member : group.submitted) {
      parameters_[member].in_flight = false;
    }
    if (statuses[i].ok()) {
      TakeResults(group);
    } else if (RefusedAsSparse(statuses[i])) {
      refused.push_back(in_flight[i]);
    } else {
      KeepFirst(status, Explain(statuses[i], group));
    }
    group.operation->Unload();
  }
  return refused;
}

void GradientReducer::TakeResults(const Group& group) {
  if (group.operation->absent_everywhere()) return;
  for (size_t i = 0; i < group.submitted.size(); ++i) {
    Parameter& parameter = parameters_[group.submitted[i]];
    if (!parameter.absent) continue;
    if (group.presence.has_value() && !group.presence->AnywherePresent(i)) {
      continue;
    }
    parameter.tensor.mutable_grad() = group.operation->result(i);
  }
}

absl::Status GradientReducer::Explain(const absl::Status& status,
                                      const Group& group) const {
  if (group.members.size() == 1 || absl::IsUnavailable(status)) return status;
  std::vector<std::string> names;
  for (const size_t index : group.submitted) {
    names.push_back(
        absl::StrCat(names.size(), " '", parameters_[index].name, "'"));
  }
  return {status.code(),
          absl::StrCat(status.message(), " Tensors of the group: ",
                       absl::StrJoin(names, ", "), ".")};
}

absl::Status GradientReducer::Synchronize() {
  absl::Status status;
  std::vector<size_t> all(options_.groups.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const std::vector<size_t> refused = Reduce(all, status);
  if (!refused.empty()) {
    const absl::Status agreed = AgreeOnSparseParameters();
    KeepFirst(status, agreed);
    if (agreed.ok() && !Reduce(refused, status).empty()) {
      KeepFirst(status, absl::InternalError(
                            "gradients became sparse while they were reduced"));
    }
  }
  // Whatever has failed: other ranks may know nothing of it.
  if (!absl::IsUnavailable(status)) KeepFirst(status, ReduceSparseGradients());
  InstallHooks();

  base::MutexLock lock(&mutex_);
  absl::Status first = std::exchange(kept_error_, absl::OkStatus());
  KeepFirst(first, status);
  BeginStep(/*reduced=*/first.ok());
  synchronized_ = first.ok();
  return first;
}

bool GradientReducer::synchronized() const {
  base::MutexLock lock(&mutex_);
  return synchronized_;
}

void GradientReducer::ForgetSynchronized() {
  base::MutexLock lock(&mutex_);
  synchronized_ = false;
}

void GradientReducer::FinishStep() {
  InstallHooks();
  base::MutexLock lock(&mutex_);
  BeginStep(/*reduced=*/false);
  synchronized_ = false;
}

void GradientReducer::Abandon() {
  bool busy = false;
  {
    base::MutexLock lock(&mutex_);
    for (const Parameter& parameter : parameters_) {
      busy = busy || parameter.in_flight ||
             parameter.passes >= options_.passes_per_step;
    }
  }
  // Submits the rest, too: another rank may have it in flight.
  if (busy) Synchronize().IgnoreError();
  {
    base::MutexLock lock(&mutex_);
    kept_error_ = absl::OkStatus();
  }
  FinishStep();
}

void GradientReducer::BeginStep(bool reduced) {
  for (Parameter& parameter : parameters_) {
    parameter.passes = 0;
    parameter.in_flight = false;
    parameter.reduced = reduced;
  }
}

}  // namespace hvdlite::internal
