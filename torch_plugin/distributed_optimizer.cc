#include <ATen/core/grad_mode.h>
#include <hvdlite/distributed_optimizer.h>

#include <atomic>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "torch_plugin/gradient_reducer.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/throw_status.h"
#include "torch_plugin/world_state.h"

namespace hvdlite {
namespace {

// "optimizer0", "optimizer1", ...: the ranks construct theirs in the same
// order.
std::string NextPrefix() {
  static std::atomic<int> next{0};
  return absl::StrCat("optimizer", next++);
}

size_t CountParameters(const torch::optim::Optimizer& optimizer) {
  size_t count = 0;
  for (const auto& group : optimizer.param_groups()) {
    count += group.params().size();
  }
  return count;
}

// The optimizer's parameters under their names, in the order of
// `named_parameters`. Throws c10::Error unless each is there exactly once.
internal::GradientReducer::NamedParameters NamesOfParameters(
    const torch::optim::Optimizer& optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters) {
  std::map<const void*, std::string> places;
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const auto& parameters = optimizer.param_groups()[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string place =
          absl::StrCat("parameter ", i, " of group ", group, " (shape [",
                       absl::StrJoin(parameters[i].sizes(), ", "), "])");
      const auto [known, inserted] =
          places.emplace(parameters[i].unsafeGetTensorImpl(), place);
      if (!inserted) {
        internal::ThrowError(absl::StrCat(
            "DistributedOptimizer: the wrapped optimizer has one tensor twice: "
            "as ",
            known->second, " and as ", place));
      }
    }
  }
  internal::GradientReducer::NamedParameters result;
  std::map<const void*, std::string> names;
  for (const auto& item : named_parameters) {
    const void* tensor = item.value().unsafeGetTensorImpl();
    if (!places.contains(tensor)) continue;
    const auto [known, inserted] = names.emplace(tensor, item.key());
    if (!inserted) {
      internal::ThrowError(absl::StrCat(
          "DistributedOptimizer: named_parameters has one tensor under two "
          "names, '",
          known->second, "' and '", item.key(),
          "'; leave one out (for shared weights, the later one)"));
    }
    internal::CheckTensor(
        item.value(),
        absl::StrCat("DistributedOptimizer: parameter '", item.key(), "'"));
    result.emplace_back(item.key(), item.value());
  }
  for (const auto& [tensor, place] : places) {
    if (!names.contains(tensor)) {
      internal::ThrowError(absl::StrCat(
          "DistributedOptimizer: ", place,
          " of the wrapped optimizer is not in named_parameters, so that its "
          "gradient would not be reduced; pass named_parameters() of the model "
          "that the optimizer was constructed with"));
    }
  }
  return result;
}

void Refuse(const std::string& option) {
  internal::ThrowError(absl::StrCat("DistributedOptimizerOptions: ", option,
                                    " is not available yet"));
}

internal::GradientReducerOptions ReducerOptions(
    const DistributedOptimizerOptions& options) {
  if (options.sparse_as_dense()) Refuse("sparse_as_dense");
  if (options.gradient_as_fusion_view()) Refuse("gradient_as_fusion_view");
  if (options.op() != ReduceOp::Average && options.op() != ReduceOp::Sum) {
    internal::ThrowError(absl::StrCat(
        "DistributedOptimizerOptions: op ", internal::NameOf(options.op()),
        " is not supported for gradients; use Average or Sum"));
  }
  if (options.backward_passes_per_step() < 1) {
    internal::ThrowError(absl::StrCat(
        "DistributedOptimizerOptions: backward_passes_per_step is ",
        options.backward_passes_per_step(), ", but must be at least 1"));
  }
  const double predivide = options.gradient_predivide_factor();
  if (!(predivide > 0)) {
    internal::ThrowError(absl::StrCat(
        "DistributedOptimizerOptions: gradient_predivide_factor is ", predivide,
        ", but must be greater than 0"));
  }
  if (predivide != 1.0 && options.op() != ReduceOp::Average) {
    internal::ThrowError(
        "DistributedOptimizerOptions: gradient_predivide_factor is for op "
        "Average only");
  }
  internal::GradientReducerOptions result;
  result.request = internal::RequestOf(
      AllreduceOptions().op(options.op()).compression(options.compression()),
      "DistributedOptimizerOptions");
  if (predivide != 1.0) {
    result.request.average = false;
    result.request.prescale_factor = 1.0 / predivide;
    result.request.postscale_factor =
        predivide / internal::CurrentWorld()->topology().size;
  }
  result.averages = options.op() == ReduceOp::Average;
  result.passes_per_step = options.backward_passes_per_step();
  result.name_prefix = options.name().empty() ? NextPrefix() : options.name();
  return result;
}

}  // namespace

class DistributedOptimizer::Impl {
 public:
  Impl(std::unique_ptr<torch::optim::Optimizer> optimizer,
       const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
       const DistributedOptimizerOptions& options)
      : inner_(std::move(optimizer)),
        options_(ReducerOptions(options)),
        reducer_(internal::GradientReducer::Create(
            NamesOfParameters(*inner_, named_parameters), options_)),
        num_parameters_(CountParameters(*inner_)),
        exceptions_at_start_(std::uncaught_exceptions()) {}

  ~Impl() {
    if (std::uncaught_exceptions() > exceptions_at_start_) {
      LeaveBecauseOfException();
    }
    reducer_->Abandon();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  torch::Tensor Step(torch::optim::Optimizer::LossClosure closure) {
    torch::Tensor loss;
    if (closure == nullptr) {
      if (!reducer_->synchronized()) Synchronize();
      loss = inner_->step();
    } else {
      loss = inner_->step([&] { return SynchronizedLoss(closure); });
    }
    reducer_->FinishStep();
    return loss;
  }

  void Synchronize() {
    if (CountParameters(*inner_) != num_parameters_) {
      internal::ThrowError(
          "DistributedOptimizer: parameters were added to the wrapped "
          "optimizer, whose gradients would not be reduced; construct a new "
          "DistributedOptimizer around it");
    }
    internal::ThrowIfError(reducer_->Synchronize());
  }

  void ZeroGrad(bool set_to_none) {
    reducer_->Abandon();
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
  }

  torch::optim::Optimizer& inner() { return *inner_; }

 private:
  // One call of the closure: this rank's loss and gradients, then the world's.
  torch::Tensor SynchronizedLoss(
      const torch::optim::Optimizer::LossClosure& closure) {
    const torch::Tensor loss = closure();
    if (!reducer_->synchronized()) Synchronize();
    if (!loss.defined()) return loss;
    return allreduce(loss.detach(), AllreduceOptions().name(absl::StrCat(
                                        options_.name_prefix, ".loss")));
  }

  static void LeaveBecauseOfException() {
    const std::shared_ptr<internal::World> world =
        internal::CurrentWorldOrNull();
    if (world == nullptr) return;
    world->Leave(absl::StrCat("an exception on rank ", world->topology().rank,
                              " ended the scope of its DistributedOptimizer"));
  }

  std::unique_ptr<torch::optim::Optimizer> inner_;
  const internal::GradientReducerOptions options_;
  std::shared_ptr<internal::GradientReducer> reducer_;
  const size_t num_parameters_;
  const int exceptions_at_start_;
};

namespace {

std::unique_ptr<torch::optim::Optimizer> NotNull(
    std::unique_ptr<torch::optim::Optimizer> optimizer) {
  if (optimizer == nullptr) {
    internal::ThrowError("DistributedOptimizer: the optimizer is null");
  }
  // Throws where there is no world.
  internal::CurrentWorld();
  return optimizer;
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(
    std::unique_ptr<torch::optim::Optimizer> optimizer,
    const torch::OrderedDict<std::string, torch::Tensor>& named_parameters,
    const DistributedOptimizerOptions& options)
    : impl_(std::make_unique<Impl>(NotNull(std::move(optimizer)),
                                   named_parameters, options)) {}

DistributedOptimizer::~DistributedOptimizer() = default;
DistributedOptimizer::DistributedOptimizer(DistributedOptimizer&&) noexcept =
    default;
DistributedOptimizer& DistributedOptimizer::operator=(
    DistributedOptimizer&&) noexcept = default;

DistributedOptimizer::Impl& DistributedOptimizer::impl() const {
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

void DistributedOptimizer::synchronize() { impl().Synchronize(); }

torch::optim::Optimizer& DistributedOptimizer::inner() {
  return impl().inner();
}

const torch::optim::Optimizer& DistributedOptimizer::inner() const {
  return impl().inner();
}

}  // namespace hvdlite
