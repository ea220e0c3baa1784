#include <ATen/core/grad_mode.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/timeline.h>
#include <torch/types.h>

#include <cmath>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/contain_exceptions.h"
#include "base/fork_mark.h"
#include "negotiation/world/process_set.h"
#include "negotiation/world/world.h"
#include "timeline/record/trace_event.h"
#include "torch_plugin/ops/tensors.h"
#include "torch_plugin/optimizer/gradient_reducer.h"
#include "torch_plugin/optimizer/parameters.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {

// Converts DistributedOptimizerOptions to the options of the GradientReducer.
namespace internal {
namespace {

constexpr char kWhat[] = "DistributedOptimizerOptions";

// The op, compression and scales for reducing gradients.
AllreduceOptions AllreduceOptionsOf(
    const DistributedOptimizerOptions& options) {
  if (options.op() != ReduceOp::Average && options.op() != ReduceOp::Sum &&
      options.op() != ReduceOp::Adasum) {
    ThrowError(absl::StrCat(kWhat, ": op ", NameOf(options.op()),
                            " is not supported for gradients; use Average, Sum "
                            "or Adasum"));
  }
  const double predivide = options.gradient_predivide_factor();
  if (!(predivide > 0) || !std::isfinite(predivide) ||
      !std::isfinite(1.0 / predivide)) {
    ThrowError(absl::StrCat(kWhat, ": gradient_predivide_factor is ", predivide,
                            ", but must be a finite number greater than 0"));
  }
  if (predivide != 1.0 && options.op() != ReduceOp::Average) {
    ThrowError(absl::StrCat(kWhat,
                            ": gradient_predivide_factor is for op Average "
                            "only, but op is ",
                            NameOf(options.op())));
  }
  return AllreduceOptions()
      .op(options.op())
      .prescale_factor(1.0 / predivide)
      .postscale_factor(predivide)
      .compression(options.compression())
      .process_set(options.process_set());
}

// Returns the options' name or the next of "optimizer0", "optimizer1", ...
// Throws c10::Error if this process is not in the process set.
std::string NamePrefix(World& world,
                       const DistributedOptimizerOptions& options) {
  const Members members = ValueOrThrow(
      MembersOf(world, options.process_set().state(), "DistributedOptimizer"));
  if (!options.name().empty()) {
    ThrowIfError(CheckName(options.name(), "DistributedOptimizer"));
    return options.name();
  }
  return absl::StrReplaceAll(world.NextName("optimizer", members.id),
                             {{".noname.", ""}});
}

// Throws c10::Error for options that are not valid.
GradientReducerOptions ReducerOptions(
    std::shared_ptr<World> world, std::string name_prefix,
    const DistributedOptimizerOptions& options,
    const NamedParameters& parameters) {
  if (options.backward_passes_per_step() < 1) {
    ThrowError(absl::StrCat(kWhat, ": backward_passes_per_step is ",
                            options.backward_passes_per_step(),
                            ", but must be at least 1"));
  }
  GradientReducerOptions result;
  result.allreduce = AllreduceOptionsOf(options);
  result.request = RequestOf(result.allreduce, kWhat);
  result.request.process_set =
      ValueOrThrow(MembersOf(*world, options.process_set().state(), kWhat)).id;
  for (const auto& [name, tensor] : parameters) {
    const std::string local_error =
        ReductionError(result.request, DataTypeOf(tensor));
    if (!local_error.empty()) {
      ThrowError(
          absl::StrCat(kWhat, ": parameter '", name, "': ", local_error));
    }
  }
  result.passes_per_step = options.backward_passes_per_step();
  result.groups = GroupParameters(options.groups(), parameters);
  result.sparse_as_dense = options.sparse_as_dense();
  result.gradient_as_fusion_view = options.gradient_as_fusion_view();
  for (const auto& buffer : options.check_buffers()) {
    CheckTensor(buffer.value(),
                absl::StrCat(kWhat, ": check_buffers '", buffer.key(), "'"));
    result.buffers.emplace_back(buffer.key(), buffer.value());
  }
  result.name_prefix = std::move(name_prefix);
  result.world = std::move(world);
  return result;
}

}  // namespace
}  // namespace internal

namespace {

// Counts the parameters that can have gradients: integers cannot.
size_t CountParameters(const torch::optim::Optimizer& optimizer) {
  size_t count = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      count += parameter.is_floating_point() || parameter.is_complex();
    }
  }
  return count;
}

std::unique_ptr<torch::optim::Optimizer> NotNull(
    std::unique_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) {
    internal::ThrowError("DistributedOptimizer: the optimizer is null");
  }
  return optimizer;
}

// Saves the parameters while a closure runs several times. Restore() brings
// them back if this ends with an exception.
class ParameterBackup {
 public:
  explicit ParameterBackup(const torch::optim::Optimizer& optimizer) {
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        copies_.emplace_back(parameter, parameter.detach().clone());
      }
    }
  }

  void Restore() const {
    const at::NoGradGuard no_grad;
    for (const auto& [parameter, copy] : copies_) parameter.copy_(copy);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
};

}  // namespace

class DistributedOptimizer::Impl {
 public:
  // Throws if there is no world.
  Impl(std::unique_ptr<torch::optim::Optimizer> optimizer,
       const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
       const DistributedOptimizerOptions& options)
      : world_(internal::CurrentWorld()),
        options_(options),
        named_parameters_(named_parameters),
        // Counted before any check fails, so that later names still agree.
        name_prefix_(internal::NamePrefix(*world_, options)),
        process_set_(options.process_set()),
        inner_(NotNull(std::move(optimizer))),
        num_parameters_(CountParameters(*inner_)),
        exceptions_at_start_(std::uncaught_exceptions()) {
    MakeReducer();
  }

  ~Impl() {
    // The exception may be a lack of memory.
    base::ContainExceptions([&] {
      if (std::uncaught_exceptions() > exceptions_at_start_) {
        LeaveBecauseOfException();
      }
    });
    base::ContainExceptions([&] {
      if (reducer_ != nullptr) reducer_->Abandon().IgnoreError();
    });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Rejoin() {
    std::shared_ptr<internal::World> world = internal::CurrentWorld();
    std::string name_prefix = internal::NamePrefix(*world, options_);
    reducer_->Abandon().IgnoreError();
    reducer_.reset();
    world_ = std::move(world);
    name_prefix_ = std::move(name_prefix);
    MakeReducer();
  }

  torch::Tensor Step(torch::optim::Optimizer::LossClosure closure) {
    CheckParameters();
    torch::Tensor loss;
    if (closure == nullptr) {
      if (!reducer_->synchronized()) Synchronize();
      if (!SkipsStep()) loss = inner_->step();
    } else {
      // LBFGS calls a closure several times and changes the parameters in
      // between.
      const ParameterBackup backup(*inner_);
      try {
        loss = inner_->step([&] { return SynchronizedLoss(closure); });
      } catch (const SkippedStep& skipped) {
        backup.Restore();
        loss = skipped.loss;
      } catch (...) {
        backup.Restore();
        throw;
      }
    }
    reducer_->FinishStep();
    // Do this also while nothing records: the first recorded step then has the
    // work of one step only.
    const timeline::StepCost cost = world_->step_meter().EndStep();
    if (const auto recorder = world_->recorder()) {
      recorder->StepOver(world_->clock().NowNanos(), cost);
    }
    return loss;
  }

  void Synchronize() {
    CheckParameters();
    const TraceSpan span(timeline::kWaitForGradients);
    const timeline::StepMeter::Wait wait(world_->step_meter());
    internal::ThrowIfError(reducer_->Synchronize());
  }

  void ZeroGrad(bool set_to_none) {
    const absl::Status replicas = reducer_->Abandon();
    const at::NoGradGuard no_grad;
    for (auto& group : inner_->param_groups()) {
      for (at::Tensor& parameter : group.params()) {
        at::Tensor& gradient = parameter.mutable_grad();
        if (!gradient.defined()) continue;
        if (set_to_none) {
          gradient.reset();
        } else {
          gradient = gradient.detach();
          gradient.zero_();
        }
      }
    }
    internal::ThrowIfError(replicas);
  }

  int64_t skipped_steps() const { return skipped_steps_; }

  // Whether this process was forked from the process that created this object.
  bool forked() const { return mark_.forked(); }

  torch::optim::Optimizer& inner() { return *inner_; }
  const ProcessSet& process_set() const { return process_set_; }

 private:
  // Ends the wrapped optimizer's step() from within its closure.
  struct SkippedStep {
    torch::Tensor loss;
  };

  // Whether to skip the step because of its gradients. Counts skipped steps.
  bool SkipsStep() {
    const std::string parameter = reducer_->not_finite();
    if (parameter.empty()) return false;
    ++skipped_steps_;
    if (process_set_.rank() == 0 &&
        (skipped_steps_ & (skipped_steps_ - 1)) == 0) {
      world_->logger().Warning(absl::StrCat(
          "DistributedOptimizer '", name_prefix_, "': all ranks skip step ",
          reducer_->present_step(), ": the reduced gradient of parameter '",
          parameter, "' has NaN or infinity; ", skipped_steps_,
          " steps skipped so far"));
    }
    return true;
  }

  void MakeReducer() {
    const internal::NamedParameters parameters =
        internal::ParametersOf(*inner_, named_parameters_);
    reducer_ = internal::GradientReducer::Create(
        parameters,
        internal::ReducerOptions(world_, name_prefix_, options_, parameters));
  }

  void CheckParameters() const {
    if (CountParameters(*inner_) == num_parameters_) return;
    internal::ThrowError(absl::StrCat(
        "DistributedOptimizer '", name_prefix_,
        "': parameters were added to the wrapped optimizer, or integer "
        "parameters became floating-point; their gradients would not be "
        "reduced: construct a new DistributedOptimizer around it"));
  }

  // One call of the closure: computes this rank's loss and gradients, then
  // those of all ranks.
  torch::Tensor SynchronizedLoss(
      const torch::optim::Optimizer::LossClosure& closure) {
    // The closure may compute no gradients on this rank, but some on others.
    reducer_->ForgetSynchronized();
    const torch::Tensor loss = closure();
    if (!reducer_->synchronized()) Synchronize();
    torch::Tensor average = AverageLoss(loss);
    if (SkipsStep()) throw SkippedStep{.loss = std::move(average)};
    return average;
  }

  // Averages over the ranks that have a loss. Undefined if no rank has one.
  torch::Tensor AverageLoss(const torch::Tensor& loss) const {
    const bool is_scalar =
        loss.defined() && loss.numel() == 1 && !loss.is_complex();
    // Sum, number of losses, number of tensors that are not a loss.
    const torch::Tensor sums = torch::zeros({3}, torch::kDouble);
    if (is_scalar) sums[0] = loss.detach().item<double>();
    sums[1] = is_scalar ? 1 : 0;
    sums[2] = loss.defined() && !is_scalar ? 1 : 0;
    allreduce_(sums, AllreduceOptions()
                         .name(name_prefix_ + ".loss")
                         .op(ReduceOp::Sum)
                         .process_set(process_set_));
    const auto invalid = sums[2].item<int64_t>();
    if (invalid != 0) {
      internal::ThrowError(absl::StrCat("DistributedOptimizer '", name_prefix_,
                                        "': the closure of ", invalid,
                                        " ranks returned a tensor that is not "
                                        "a loss: return one real value"));
    }
    if (sums[1].item<int64_t>() == 0) return {};
    const torch::Tensor average = sums[0] / sums[1];
    if (!is_scalar) return average;
    return average.reshape(loss.sizes()).to(loss.scalar_type());
  }

  void LeaveBecauseOfException() {
    world_->coordinator().Leave(
        absl::StrCat("an exception on rank ", world_->topology().rank,
                     " ended the scope of its DistributedOptimizer"));
  }

  const base::ForkMark mark_;
  std::shared_ptr<internal::World> world_;
  const DistributedOptimizerOptions options_;
  const torch::OrderedDict<std::string, torch::Tensor> named_parameters_;
  std::string name_prefix_;
  const ProcessSet process_set_;
  const std::unique_ptr<torch::optim::Optimizer> inner_;
  const size_t num_parameters_;
  const int exceptions_at_start_;
  std::shared_ptr<internal::GradientReducer> reducer_;
  int64_t skipped_steps_ = 0;
};

DistributedOptimizer::DistributedOptimizer(
    std::unique_ptr<torch::optim::Optimizer> optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
    const DistributedOptimizerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(optimizer), named_parameters,
                                   options)) {}

DistributedOptimizer::~DistributedOptimizer() {
  if (impl_ != nullptr && impl_->forked()) (void)impl_.release();
}
DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&&) noexcept =
    default;
DistributedOptimizer& DistributedOptimizer::operator=(
    DistributedOptimizer&& other) noexcept {
  DistributedOptimizer moved(std::move(other));
  impl_.swap(moved.impl_);
  return *this;
}

DistributedOptimizer::Impl& DistributedOptimizer::impl() const {
  internal::ThrowIfForked();
  if (impl_ == nullptr) {
    internal::ThrowError(
        "this DistributedOptimizer was moved from; use the one it was moved "
        "to");
  }
  return *impl_;
}

torch::Tensor DistributedOptimizer::step(
    torch::optim::Optimizer::LossClosure closure) {
  return impl().Step(std::move(closure));
}

void DistributedOptimizer::zero_grad(bool set_to_none) {
  impl().ZeroGrad(set_to_none);
}

int64_t DistributedOptimizer::skipped_steps() const {
  return impl().skipped_steps();
}

void DistributedOptimizer::Rejoin() { impl().Rejoin(); }

void DistributedOptimizer::synchronize() { impl().Synchronize(); }

const ProcessSet& DistributedOptimizer::process_set() const {
  return impl().process_set();
}

torch::optim::Optimizer& DistributedOptimizer::inner() {
  return impl().inner();
}

const torch::optim::Optimizer& DistributedOptimizer::inner() const {
  return impl().inner();
}

}  // namespace hvdlite
