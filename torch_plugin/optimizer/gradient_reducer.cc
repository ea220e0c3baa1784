#include "torch_plugin/optimizer/gradient_reducer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/world/process_set.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

// Parameters of which a ParameterSample is made.
constexpr size_t kNumSampled = 16;

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
      looks_at_gradients_(options_.world->config().nonfinite_gradients !=
                          "off"),
      replicas_(*options_.world, parameters,
                {.name_prefix = options_.name_prefix,
                 .process_set = options_.allreduce.process_set(),
                 .buffers = options_.buffers}),
      joins_(options_.world->joins()) {
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

absl::Status GradientReducer::MakeArena() {
  NamedParameters parameters;
  for (const Parameter& parameter : parameters_) {
    parameters.emplace_back(parameter.name, parameter.tensor);
  }
  absl::StatusOr<std::unique_ptr<GradientArena>> arena =
      GradientArena::Create(*options_.world, parameters, options_.groups);
  if (arena.ok()) {
    arena_ = *std::move(arena);
    return absl::OkStatus();
  }
  if (!absl::IsResourceExhausted(arena.status())) return arena.status();
  arena_.reset();
  options_.world->logger().Warning(absl::StrCat(
      "DistributedOptimizer '", options_.name_prefix,
      "' goes without gradient_as_fusion_view on this rank, which is slower: ",
      arena.status().message(),
      "; free memory (shared memory, where the ranks of a node share theirs), "
      "or set gradient_as_fusion_view(false)"));
  return absl::OkStatus();
}

// Parameters may have changed their types since.
void GradientReducer::InstallHooks() {
  const std::weak_ptr<GradientReducer> weak = weak_from_this();
  base::MutexLock lock(&mutex_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
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
  Parameter& parameter = parameters_[index];
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

void GradientReducer::CountPass(Parameter& parameter) {
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
  Parameter& parameter = parameters_[index];
  if (!std::exchange(parameter.unfollowed, false)) CountPass(parameter);
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
  if (parameter.unfollowed) return false;
  return parameter.sparse || parameter.passes >= options_.passes_per_step ||
         !parameter.tensor.requires_grad();
}

bool GradientReducer::Unwatched(const Parameter& parameter) {
  return parameter.hooks == nullptr && parameter.tensor.requires_grad();
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
    } else if (absl::StrContains(statuses[i].message(), kIsSparse)) {
      refused.push_back(in_flight[i]);
    } else {
      KeepFirst(status, Explain(statuses[i], group));
    }
    if (!statuses[i].ok() && group.operation->next_step() != 0) {
      step() = group.operation->next_step();
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

void GradientReducer::KeepFirst(absl::Status& kept,
                                const absl::Status& status) {
  if (kept.ok() ||
      (absl::IsUnavailable(status) && !absl::IsUnavailable(kept))) {
    kept = status;
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
  // Then all ranks are in one step.
  if (status.ok()) KeepFirst(status, CheckReplicas());
  InstallHooks();

  base::MutexLock lock(&mutex_);
  not_finite_.clear();
  if (status.ok() && options_.world->config().nonfinite_gradients == "skip") {
    for (const Parameter& parameter : parameters_) {
      if (IsFinite(parameter.tensor.grad())) continue;
      not_finite_ = parameter.name;
      break;
    }
  }
  absl::Status first = std::exchange(kept_error_, absl::OkStatus());
  KeepFirst(first, status);
  // From the next reduction on.
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
    present = step();
    joins = joins_;
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
  return step();
}

bool GradientReducer::synchronized() const {
  base::MutexLock lock(&mutex_);
  return synchronized_ &&
         std::none_of(parameters_.begin(), parameters_.end(), Unwatched);
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
  step() += 1;
}

absl::Status GradientReducer::Abandon() {
  bool busy = false;
  bool accumulated = false;  // some, but nothing that other ranks may know of
  {
    base::MutexLock lock(&mutex_);
    for (const Parameter& parameter : parameters_) {
      busy = busy || parameter.in_flight ||
             parameter.passes >= options_.passes_per_step;
      accumulated = accumulated || parameter.passes > 0;
    }
    if (accumulated && !warned_of_early_change_ && sample_.Changed()) {
      warned_of_early_change_ = true;
      options_.world->logger().Warning(absl::StrCat(
          "DistributedOptimizer '", options_.name_prefix, "': in step ", step(),
          " parameters changed after backward(), but reduced gradients were "
          "never consumed: is there inner().step() instead of step()? Each "
          "rank then trains by itself."));
    }
  }
  absl::Status status;
  // Submits the rest, too: another rank may have it in flight.
  if (busy) status = Synchronize();
  InstallHooks();
  base::MutexLock lock(&mutex_);
  kept_error_ = absl::OkStatus();
  BeginRound(/*reduced=*/false);
  // Gradients whose reduction has failed are of no use on any rank.
  const bool drops = synchronized_ || (accumulated && !busy);
  synchronized_ = false;
  not_finite_.clear();
  if (drops) step() += 2;
  return absl::IsDataLoss(status) ? status : absl::OkStatus();
}

uint32_t& GradientReducer::step() {
  if (const int64_t joins = options_.world->joins(); joins != joins_) {
    joins_ = joins;
    step_ = 1;
  }
  return step_;
}

void GradientReducer::BeginRound(bool reduced) {
  sample_.Clear();
  for (Parameter& parameter : parameters_) {
    parameter.passes = 0;
    parameter.unfollowed = false;
    parameter.in_flight = false;
    parameter.reduced = reduced;
  }
}

}  // namespace hvdlite::internal
