// The parts of GradientReducer that make gradients into operations, and that
// reduce sparse gradients.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/ops.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "torch_plugin/ops/sixteen_bits.h"
#include "torch_plugin/optimizer/gradient_reducer.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

absl::Status SubmissionError(const std::exception& error,
                             const std::string& name) {
  return absl::InternalError(absl::StrCat(
      "gradients could not be submitted as '", name, "': ", error.what()));
}

}  // namespace

bool GradientReducer::Contributes(const Parameter& parameter) const {
  // Reduced already and not touched since: a sum must not count it again.
  const bool counted = parameter.reduced && !Unwatched(parameter) &&
                       options_.allreduce.op() == ReduceOp::Sum;
  return parameter.tensor.grad().defined() && !counted;
}

at::Tensor GradientReducer::PlaceOf(size_t index) const {
  if (arena_ == nullptr) return {};
  return arena_->Gradient(index, parameters_[index].tensor);
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
    dense.copy_(WidenedDense(gradient));
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

bool GradientReducer::PassesLook(const Parameter& parameter) const {
  // Called for each gradient; grad() would ask whether the tensor is a leaf.
  return !looks_at_gradients_ || parameter.reduced ||
         IsFinite(parameter.tensor.mutable_grad());
}

std::string GradientReducer::FiniteProblem(const Parameter& parameter) {
  const std::string& mode = options_.world->config().nonfinite_gradients;
  std::string problem =
      absl::StrCat("the gradient of parameter '", parameter.name,
                   "' has NaN or infinity in step ", step());
  if (mode == "error") return problem;
  const bool repeated = last_not_finite_ == step() && steps_not_finite_ > 0;
  last_not_finite_ = step();
  if (!repeated && std::has_single_bit(++steps_not_finite_)) {
    options_.world->logger().Warning(absl::StrCat(
        "DistributedOptimizer '", options_.name_prefix, "': ", problem,
        ", computed by this rank",
        steps_not_finite_ > 1
            ? absl::StrCat(", as it has in ", steps_not_finite_ - 1,
                           " earlier steps, of which not all are told")
            : "",
        mode == "skip" ? "; all ranks skip the step"
                       : "; it makes the parameters of all ranks so. "
                         "HVDLITE_NONFINITE_GRADIENTS=skip leaves such steps "
                         "out, =error makes them an error"));
  }
  return "";
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
  std::string local_error;
  bool absent = true;
  for (const size_t index : group.members) {
    Parameter& parameter = parameters_[index];
    if (parameter.sparse) continue;
    group.submitted.push_back(index);
    parameter.absent = !Contributes(parameter);
    if (parameter.absent) continue;
    absent = false;
    std::string problem = MakeDense(index);
    if (problem.empty() && !PassesLook(parameter)) {
      problem = FiniteProblem(parameter);
    }
    if (local_error.empty()) local_error = std::move(problem);
  }
  if (group.submitted.empty()) return false;
  if (!local_error.empty()) {
    HVDLITE_RETURN_IF_ERROR(
        group.operation->SetLocalError(std::move(local_error)));
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
      arena_ == nullptr
          ? at::empty({count}, at::kFloat)
          : arena_->Presence(parameters_[group.members.front()].group)
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
    status = RepeatedOperation::Submit(*options_.world, operations, step(),
                                       submission);
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

absl::Status GradientReducer::AgreeOnSparseParameters() {
  at::Tensor sparse;
  {
    base::MutexLock lock(&mutex_);
    sparse = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kInt);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i].tensor.grad();
      sparse.data_ptr<int32_t>()[i] =
          gradient.defined() && gradient.is_sparse();
    }
  }
  const absl::Status status = StatusOfOperation([&] {
    allreduce_(sparse,
               AllreduceOptions()
                   .name(absl::StrCat(options_.name_prefix, ".is_sparse"))
                   .op(ReduceOp::Max)
                   .process_set(options_.allreduce.process_set()));
  });
  if (!status.ok()) return status;
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (sparse.data_ptr<int32_t>()[i] != 0) parameters_[i].sparse = true;
  }
  return absl::OkStatus();
}

absl::Status GradientReducer::ReduceSparseGradients() {
  std::vector<size_t> sparse;
  std::vector<std::string> names;
  std::vector<at::Tensor> gradients;
  std::string problem;
  // Per parameter whether some rank has its gradient; the largest step and, by
  // its negative, the smallest; and one more than the last rank that refuses.
  at::Tensor present;
  int32_t* numbers = nullptr;
  {
    base::MutexLock lock(&mutex_);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].sparse) sparse.push_back(i);
    }
    if (sparse.empty()) return absl::OkStatus();
    present = at::zeros({static_cast<int64_t>(sparse.size()) + 3}, at::kInt);
    numbers = present.data_ptr<int32_t>();
    for (size_t i = 0; i < sparse.size(); ++i) {
      const Parameter& parameter = parameters_[sparse[i]];
      const bool contributes = Contributes(parameter);
      if (contributes && problem.empty() && !PassesLook(parameter)) {
        problem = FiniteProblem(parameter);
      }
      names.push_back(parameter.name);
      numbers[i] = contributes;
      gradients.push_back(contributes ? SparseRows(parameter.tensor.grad())
                                      : NoSparseRows(parameter.tensor));
    }
    const size_t count = sparse.size();
    numbers[count] = static_cast<int32_t>(step());
    numbers[count + 1] = -numbers[count];
    if (!problem.empty()) {
      numbers[count + 2] = 1 + options_.world->topology().rank;
    }
  }
  AllreduceOptions options = options_.allreduce;
  const std::string name = absl::StrCat(options_.name_prefix, ".is_present");
  const absl::Status status = StatusOfOperation([&] {
    allreduce_(present, AllreduceOptions()
                            .name(name)
                            .op(ReduceOp::Max)
                            .process_set(options.process_set()));
  });
  if (!status.ok()) return status;
  const int32_t last_step = numbers[sparse.size()];
  if (const int32_t first_step = -numbers[sparse.size() + 1];
      first_step != last_step) {
    base::MutexLock lock(&mutex_);
    step() = static_cast<uint32_t>(last_step) + 1;
    return absl::InvalidArgumentError(absl::StrCat(
        "the ranks are in different steps with '", name, "', from step ",
        first_step, " to ", last_step,
        ": call step() or zero_grad() alike on all ranks. To go on, call "
        "zero_grad() on all ranks and repeat the step; first "
        "broadcast_parameters() where only some ranks took the last one."));
  }
  if (const int32_t refusing = numbers[sparse.size() + 2]; refusing != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' cannot be done on rank ", refusing - 1,
        ", maybe among others: a sparse gradient has NaN or infinity in step ",
        last_step));
  }
  return StatusOfOperation([&] {
    for (size_t i = 0; i < sparse.size(); ++i) {
      if (numbers[i] == 0) continue;
      options.name(
          absl::StrCat(options_.name_prefix, ".sparse_allreduce.", names[i]));
      const at::Tensor result = sparse_allreduce(gradients[i], options);
      base::MutexLock lock(&mutex_);
      parameters_[sparse[i]].tensor.mutable_grad() = result;
    }
  });
}

}  // namespace hvdlite::internal
