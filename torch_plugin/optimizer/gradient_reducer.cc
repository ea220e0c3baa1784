#include "torch_plugin/optimizer/gradient_reducer.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "negotiation/world/process_set.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Number of parameters in a ParameterSample.
constexpr size_t kNumSampled = 16;

absl::Status SubmissionError(const std::exception& error,
                             const std::string& name) {
  return absl::InternalError(absl::StrCat(
      "gradients could not be submitted as '", name, "': ", error.what()));
}

}  // namespace

std::shared_ptr<GradientReducer> GradientReducer::Create(
    const NamedParameters& parameters, GradientReducerOptions options) {
  auto reducer =
      std::make_shared<GradientReducer>(parameters, std::move(options));
  {
    base::MutexLock lock(&reducer->mutex_);
    if (reducer->options_.gradient_as_fusion_view) {
      ThrowIfError(reducer->MakeArena());
    }
  }
  reducer->InstallHooks();
  return reducer;
}

GradientReducer::GradientReducer(const NamedParameters& parameters,
                                 GradientReducerOptions options)
    : options_(std::move(options)),
      replicas_(*options_.world, parameters,
                {.name_prefix = options_.name_prefix,
                 .process_set = options_.allreduce.process_set(),
                 .buffers = options_.buffers}),
      steps_(options_.world),
      finite_(options_.world, options_.name_prefix) {
  for (const auto& [name, tensor] : parameters) {
    GradientParameter& parameter = parameters_.emplace_back();
    parameter.name = name;
    parameter.tensor = tensor;
  }
  in_flight_.reserve(options_.groups.size());
  for (size_t i = 0; i < options_.groups.size(); ++i) {
    const std::vector<size_t>& members = options_.groups[i];
    for (const size_t index : members) parameters_[index].group = i;
    negotiation::Request request = options_.request;
    request.name = NameInSet(
        members.size() == 1
            ? absl::StrCat(options_.name_prefix, ".allreduce.",
                           parameters_[members.front()].name)
            : absl::StrCat(options_.name_prefix, ".grouped_allreduce.", i),
        request.process_set);
    groups_.push_back(std::make_unique<GradientGroup>(
        GradientGroup::Options{.world = options_.world,
                               .allreduce = options_.allreduce,
                               .request = std::move(request),
                               .members = members,
                               .sparse_as_dense = options_.sparse_as_dense}));
  }
}

absl::Status GradientReducer::MakeArena() {
  NamedParameters parameters;
  for (const GradientParameter& parameter : parameters_) {
    parameters.emplace_back(parameter.name, parameter.tensor);
  }
  HVDLITE_ASSIGN_OR_RETURN(
      arena_, GradientArena::CreateOrWarn(*options_.world, options_.name_prefix,
                                          parameters, options_.groups));
  return absl::OkStatus();
}

// Called again because parameters may have changed their types.
void GradientReducer::InstallHooks() {
  const std::weak_ptr<GradientReducer> weak = weak_from_this();
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    GradientParameter& parameter = parameters_[i];
    if (parameter.hooks != nullptr) {
      parameter.hooks->Follow();
    } else if (GradientHooks::CanWatch(parameter.tensor)) {
      parameter.hooks = std::make_unique<GradientHooks>(
          parameter.tensor,
          [weak, i](bool followed) {
            if (const auto reducer = weak.lock()) {
              reducer->BeforeAccumulation(i, followed);
            }
          },
          [weak, i](const at::Tensor& accumulated) {
            if (const auto reducer = weak.lock()) {
              reducer->AfterAccumulation(i, accumulated);
            }
          });
    }
  }
}

void GradientReducer::BeforeAccumulation(size_t index, bool followed) {
  ThrowIfForked();
  base::MutexLock lock(&mutex_);
  GradientParameter& parameter = parameters_[index];
  if (parameter.in_flight || parameter.passes >= options_.passes_per_step) {
    ThrowError(absl::StrCat(
        "backward() computes a new gradient for parameter '", parameter.name,
        "' while its last one is being reduced: call step() or synchronize() "
        "first, or set backward_passes_per_step (now ",
        options_.passes_per_step,
        ") to the number of backward passes per step"));
  }
  if (followed) return;
  parameter.unfollowed = true;
  CountPass(parameter);
}

void GradientReducer::CountPass(GradientParameter& parameter) {
  if (sample_.empty()) {
    const size_t stride = parameters_.size() / kNumSampled + 1;
    for (size_t i = 0; i < parameters_.size(); i += stride) {
      sample_.Add(parameters_[i].tensor);
    }
  }
  synchronized_ = false;
  parameter.reduced = false;
  ++parameter.passes;
}

void GradientReducer::AfterAccumulation(size_t index,
                                        const at::Tensor& accumulated) {
  base::MutexLock lock(&mutex_);
  GradientParameter& parameter = parameters_[index];
  if (!std::exchange(parameter.unfollowed, false)) CountPass(parameter);
  // Synchronize() reduces a sparse gradient; its group does not wait for it.
  if (parameter.sparse) return;
  for (const size_t member : groups_[parameter.group]->members()) {
    if (!Complete(parameters_[member])) return;
  }
  parameter.references = ReferencesInHook(parameter.tensor.grad(), accumulated);
  const absl::Cleanup reset = [&] { parameter.references = 1; };
  Submit({parameter.group}, Submission::kAsynchronous);
}

bool GradientReducer::Complete(const GradientParameter& parameter) const {
  if (parameter.unfollowed) return false;
  return parameter.sparse || parameter.passes >= options_.passes_per_step ||
         !parameter.tensor.requires_grad();
}

bool GradientReducer::InFlight(const GradientGroup& group) const {
  return !group.submitted().empty() &&
         parameters_[group.submitted().front()].in_flight;
}

bool GradientReducer::TryLoad(GradientGroup& group) {
  absl::StatusOr<bool> loaded;
  try {
    loaded = group.Load(parameters_, arena_.get(), finite_, steps_.present());
  } catch (const std::exception& error) {
    loaded = SubmissionError(error, group.operation().name());
  }
  if (!loaded.ok()) KeepFirst(kept_error_, loaded.status());
  return loaded.ok() && *loaded;
}

void GradientReducer::Submit(absl::Span<const size_t> groups,
                             Submission submission) {
  const at::NoGradGuard no_grad;
  absl::InlinedVector<size_t, 1> loaded;
  absl::InlinedVector<PersistentCall*, 1> operations;
  for (const size_t index : groups) {
    GradientGroup& group = *groups_[index];
    if (InFlight(group) || !TryLoad(group)) continue;
    loaded.push_back(index);
    operations.push_back(&group.operation());
  }
  absl::Status status;
  try {
    status = PersistentCall::Submit(*options_.world, operations, submission);
  } catch (const std::exception& error) {
    status = SubmissionError(error, operations.front()->name());
  }
  if (!status.ok()) {
    KeepFirst(kept_error_, status);
    for (PersistentCall* operation : operations) operation->Release();
    return;
  }
  for (const size_t index : loaded) {
    in_flight_.push_back(index);
    for (const size_t member : groups_[index]->submitted()) {
      parameters_[member].in_flight = true;
    }
  }
}

std::vector<size_t> GradientReducer::Reduce(const std::vector<size_t>& groups,
                                            absl::Status& status) {
  std::vector<size_t> in_flight;
  std::vector<PersistentCall*> operations;
  {
    base::MutexLock lock(&mutex_);
    Submit(groups, Submission::kSynchronous);
    in_flight = std::exchange(in_flight_, {});
    operations.reserve(in_flight.size());
    for (const size_t index : in_flight) {
      operations.push_back(&groups_[index]->operation());
    }
  }
  // Wait for the last one first: this marks all as awaited at once, so that the
  // rest needs as few buckets as possible.
  std::vector<std::pair<size_t, absl::Status>> outcomes;
  outcomes.reserve(operations.size());
  for (size_t i = operations.size(); i-- > 0;) {
    absl::Status outcome =
        options_.world->coordinator().Wait(operations[i]->completion());
    if (outcome.ok()) outcome = operations[i]->Deliver();
    outcomes.emplace_back(in_flight[i], std::move(outcome));
  }

  // Ranks submit in different orders, but must report the same error.
  std::sort(outcomes.begin(), outcomes.end(),
            [](const auto& left, const auto& right) {
              return left.first < right.first;
            });
  base::MutexLock lock(&mutex_);
  std::vector<size_t> refused;
  for (const auto& [index, outcome] : outcomes) {
    GradientGroup& group = *groups_[index];
    for (const size_t member : group.submitted()) {
      parameters_[member].in_flight = false;
    }
    if (outcome.ok()) {
      group.TakeResults(parameters_);
    } else if (GradientGroup::RefusedAsSparse(outcome)) {
      refused.push_back(index);
    } else {
      KeepFirst(status, group.Explain(outcome, parameters_));
    }
    if (const uint32_t next = group.operation().completion().next_step();
        !outcome.ok() && next != 0) {
      steps_.ContinueWith(next);
    }
    group.operation().Release();
  }
  return refused;
}

void GradientReducer::KeepFirst(absl::Status& kept,
                                const absl::Status& status) {
  if (kept.ok() ||
      (absl::IsUnavailable(status) && !absl::IsUnavailable(kept))) {
    kept = status;
  }
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
  // Do this also after an error, since other ranks may not know of it.
  if (!absl::IsUnavailable(status)) KeepFirst(status, ReduceSparseGradients());
  // After success all ranks are in the same step.
  if (status.ok()) KeepFirst(status, CheckReplicas());
  InstallHooks();

  base::MutexLock lock(&mutex_);
  not_finite_.clear();
  if (status.ok() && finite_.skips_steps()) {
    for (const GradientParameter& parameter : parameters_) {
      if (IsFinite(parameter.tensor.grad())) continue;
      not_finite_ = parameter.name;
      break;
    }
  }
  absl::Status first = std::exchange(kept_error_, absl::OkStatus());
  KeepFirst(first, status);
  // This takes effect in the next reduction.
  if (arena_ != nullptr && arena_->outgrown()) KeepFirst(first, MakeArena());
  BeginRound(/*reduced=*/first.ok());
  synchronized_ = first.ok();
  return first;
}

absl::Status GradientReducer::CheckReplicas() {
  uint32_t present = 0;
  int64_t joins = 0;
  bool changed_early = false;
  {
    base::MutexLock lock(&mutex_);
    present = steps_.present();
    joins = steps_.joins();
    changed_early = sample_.Changed();
  }
  return replicas_.Run(present, joins, changed_early);
}

std::string GradientReducer::not_finite() const {
  base::MutexLock lock(&mutex_);
  return not_finite_;
}

uint32_t GradientReducer::present_step() {
  base::MutexLock lock(&mutex_);
  return steps_.present();
}

bool GradientReducer::synchronized() const {
  base::MutexLock lock(&mutex_);
  return synchronized_ &&
         std::none_of(parameters_.begin(), parameters_.end(),
                      std::mem_fn(&GradientParameter::Unwatched));
}

void GradientReducer::ForgetSynchronized() {
  base::MutexLock lock(&mutex_);
  synchronized_ = false;
}

void GradientReducer::FinishStep() {
  InstallHooks();
  base::MutexLock lock(&mutex_);
  BeginRound(/*reduced=*/false);
  synchronized_ = false;
  not_finite_.clear();
  steps_.Advance(1);
}

absl::Status GradientReducer::Abandon() {
  bool busy = false;
  bool accumulated = false;  // some, possibly unknown to the other ranks
  {
    base::MutexLock lock(&mutex_);
    for (const GradientParameter& parameter : parameters_) {
      busy = busy || parameter.in_flight ||
             parameter.passes >= options_.passes_per_step;
      accumulated = accumulated || parameter.passes > 0;
    }
    if (accumulated && !warned_of_early_change_ && sample_.Changed()) {
      warned_of_early_change_ = true;
      options_.world->logger().Warning(absl::StrCat(
          "DistributedOptimizer '", options_.name_prefix, "': in step ",
          steps_.present(),
          " parameters changed after backward(), but the reduced gradients "
          "were never used. Possible cause: inner().step() instead of step(); "
          "then each rank trains alone."));
    }
  }
  absl::Status status;
  // This also submits the rest, since another rank may have it in flight.
  if (busy) status = Synchronize();
  InstallHooks();
  base::MutexLock lock(&mutex_);
  kept_error_ = absl::OkStatus();
  BeginRound(/*reduced=*/false);
  // Gradients of a failed reduction are useless on all ranks.
  const bool drops = synchronized_ || (accumulated && !busy);
  synchronized_ = false;
  not_finite_.clear();
  if (drops) steps_.Advance(2);
  return absl::IsDataLoss(status) ? status : absl::OkStatus();
}

SparseReduction GradientReducer::Sparse() const {
  return {.allreduce = options_.allreduce,
          .name_prefix = options_.name_prefix,
          .rank = options_.world->topology().rank};
}

absl::Status GradientReducer::AgreeOnSparseParameters() {
  std::vector<bool> sparse_here;
  {
    base::MutexLock lock(&mutex_);
    for (const GradientParameter& parameter : parameters_) {
      const at::Tensor gradient = parameter.tensor.grad();
      sparse_here.push_back(gradient.defined() && gradient.is_sparse());
    }
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<bool> sparse,
                           AgreeOnSparse(Sparse(), sparse_here));
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (sparse[i]) parameters_[i].sparse = true;
  }
  return absl::OkStatus();
}

absl::Status GradientReducer::ReduceSparseGradients() {
  std::vector<size_t> indices;
  std::vector<SparseGradient> gradients;
  std::string refusal;
  uint32_t step = 0;
  {
    base::MutexLock lock(&mutex_);
    step = steps_.present();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const GradientParameter& parameter = parameters_[i];
      if (!parameter.sparse) continue;
      const bool present = parameter.Contributes(options_.allreduce.op());
      const at::Tensor gradient = parameter.tensor.grad();
      if (present && refusal.empty() && !parameter.reduced) {
        refusal = finite_.Refusal(parameter.name, gradient, step);
      }
      indices.push_back(i);
      gradients.push_back({.parameter = parameter.name,
                           .rows = present ? SparseRows(gradient)
                                           : NoSparseRows(parameter.tensor),
                           .present = present});
    }
  }
  const uint32_t present_step = step;
  const absl::Status status =
      ReduceSparse(Sparse(), /*refuses=*/!refusal.empty(), gradients, step);
  base::MutexLock lock(&mutex_);
  if (step != present_step) steps_.ContinueWith(step);
  if (!status.ok()) return status;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!gradients[i].rows.defined()) continue;
    parameters_[indices[i]].tensor.mutable_grad() = gradients[i].rows;
  }
  return absl::OkStatus();
}

void GradientReducer::BeginRound(bool reduced) {
  sample_.Clear();
  for (GradientParameter& parameter : parameters_) {
    parameter.passes = 0;
    parameter.unfollowed = false;
    parameter.in_flight = false;
    parameter.reduced = reduced;
  }
}

}  // namespace hvdlite::internal
