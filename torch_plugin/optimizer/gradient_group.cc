#include "torch_plugin/optimizer/gradient_group.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "torch_plugin/ops/sixteen_bits.h"

namespace hvdlite::internal {
namespace {

// Text of a local error. All ranks recognise it and repeat the operation
// without the sparse gradients.
constexpr char kIsSparse[] =
    "has a sparse gradient, which is reduced separately";

// The parameter's place in the arena. Undefined: the gradient may lie anywhere.
at::Tensor PlaceOf(GradientArena* arena, size_t index,
                   const GradientParameter& parameter) {
  return arena == nullptr ? at::Tensor()
                          : arena->Gradient(index, parameter.tensor);
}

// Returns the tensors for reducing the gradient. `operation_absent`: this rank
// contributes nothing to the whole operation.
OperationTensors TensorsOf(const GradientParameter& parameter,
                           const at::Tensor& place, bool operation_absent) {
  if (!operation_absent && !parameter.absent) {
    if (place.defined()) MoveGradient(parameter.tensor, place);
    return PresentGradient(parameter.tensor, parameter.tensor.grad(),
                           parameter.references);
  }
  // A gradient that must not count again keeps its place.
  const at::Tensor memory =
      place.defined() && !parameter.tensor.grad().defined()
          ? place
          : EmptyGradient(parameter.tensor);
  return operation_absent ? AbsentGradient(memory) : ZeroGradient(memory);
}

}  // namespace

bool GradientParameter::Contributes(ReduceOp op) const {
  // A reduced gradient that has not changed must not count again in a sum.
  const bool counted = reduced && !Unwatched() && op == ReduceOp::Sum;
  return tensor.grad().defined() && !counted;
}

GradientGroup::GradientGroup(Options options)
    : options_(std::move(options)),
      operation_({.request = options_.request}, negotiation::Owner::kOne) {}

// Why the gradient cannot be part of an operation on dense gradients. Empty: it
// can. Makes it dense if the options ask for it.
std::string GradientGroup::MakeDense(const GradientParameter& parameter,
                                     const at::Tensor& place) const {
  const at::Tensor gradient = parameter.tensor.grad();
  if (gradient.layout() == at::kStrided) return "";
  if (gradient.layout() != at::kSparse) {
    return absl::StrCat("the gradient of parameter '", parameter.name,
                        "' is neither dense nor sparse (COO)");
  }
  if (options_.sparse_as_dense) {
    const at::Tensor dense =
        place.defined() ? place : EmptyGradient(parameter.tensor);
    dense.copy_(WidenedDense(gradient));
    parameter.tensor.mutable_grad() = dense;
    return "";
  }
  if (options_.allreduce.op() == ReduceOp::Adasum) {
    return absl::StrCat(
        "parameter '", parameter.name,
        "' has a sparse gradient, which op Adasum does not support; set "
        "sparse_as_dense(true), use op Average, or construct the embedding "
        "with sparse(false)");
  }
  return absl::StrCat("parameter '", parameter.name, "' ", kIsSparse);
}

absl::StatusOr<bool> GradientGroup::Load(
    std::vector<GradientParameter>& parameters, GradientArena* arena,
    NonfiniteCheck& check, uint32_t step) {
  submitted_.clear();
  std::string local_error;
  bool absent = true;
  for (const size_t index : members()) {
    GradientParameter& parameter = parameters[index];
    if (parameter.sparse) continue;
    submitted_.push_back(index);
    parameter.absent = !parameter.Contributes(options_.allreduce.op());
    if (parameter.absent) continue;
    absent = false;
    // Use mutable_grad(), since grad() would check whether the tensor is a
    // leaf.
    const at::Tensor& gradient = parameter.tensor.mutable_grad();
    std::string problem;
    if (gradient.layout() != at::kStrided) {
      problem = MakeDense(parameter, PlaceOf(arena, index, parameter));
    }
    if (problem.empty() && !parameter.reduced) {
      problem = check.Refusal(parameter.name, gradient, step);
    }
    if (local_error.empty()) local_error = std::move(problem);
  }
  if (submitted_.empty()) return false;
  PendingOperation::Call& call = operation_.call();
  call.step = step;
  call.absent = absent && local_error.empty();
  call.request.local_error = std::move(local_error);
  if (call.request.local_error.empty()) {
    PendingOperation::Tensors tensors;
    for (const size_t index : submitted_) {
      const GradientParameter& parameter = parameters[index];
      tensors.push_back(
          TensorsOf(parameter, PlaceOf(arena, index, parameter), absent));
    }
    if (members().size() > 1) {
      MakePresence(parameters, arena);
      for (OperationTensors& one : presence_->Tensors(absent)) {
        tensors.push_back(std::move(one));
      }
    }
    operation_.SetTensorsInMemoryOrder(std::move(tensors));
  }
  HVDLITE_RETURN_IF_ERROR(operation_.Load(*options_.world));
  return true;
}

void GradientGroup::MakePresence(
    const std::vector<GradientParameter>& parameters, GradientArena* arena) {
  std::vector<bool> present;
  for (const size_t index : submitted_) {
    present.push_back(!parameters[index].absent);
  }
  // The value that is sent is 1, whatever the scale is.
  const auto unit =
      static_cast<float>(1.0 / options_.allreduce.prescale_factor());
  const auto count = static_cast<int64_t>(present.size());
  const at::Tensor memory =
      arena == nullptr ? at::empty({count}, at::kFloat)
                       : arena->Presence(parameters[members().front()].group)
                             .narrow(0, 0, count);
  presence_.emplace(
      memory, present, unit,
      /*each_by_itself=*/options_.allreduce.op() == ReduceOp::Adasum);
}

void GradientGroup::TakeResults(std::vector<GradientParameter>& parameters) {
  if (operation_.completion().absent_everywhere()) return;
  for (size_t i = 0; i < submitted_.size(); ++i) {
    GradientParameter& parameter = parameters[submitted_[i]];
    if (!parameter.absent) continue;
    if (presence_.has_value() && !presence_->AnywherePresent(i)) continue;
    parameter.tensor.mutable_grad() = operation_.call().tensors[i].result;
  }
}

bool GradientGroup::RefusedAsSparse(const absl::Status& status) {
  return absl::StrContains(status.message(), kIsSparse);
}

absl::Status GradientGroup::Explain(
    const absl::Status& status,
    const std::vector<GradientParameter>& parameters) const {
  if (members().size() == 1 || absl::IsUnavailable(status)) return status;
  std::vector<std::string> names;
  for (const size_t index : submitted_) {
    names.push_back(
        absl::StrCat(names.size(), " '", parameters[index].name, "'"));
  }
  return {status.code(),
          absl::StrCat(status.message(), " Tensors of the group: ",
                       absl::StrJoin(names, ", "), ".")};
}

}  // namespace hvdlite::internal
