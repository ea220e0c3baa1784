// SyncBatchNorm: the mean and variance per channel over the mini-batches of
// several ranks, batch normalisation with these, and its gradient, which takes
// into account that they depend on the inputs of all ranks.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <hvdlite/ops.h>
#include <hvdlite/process_set.h>
#include <hvdlite/sync_batch_norm.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/init.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/world/process_set.h"
#include "negotiation/world/world.h"
#include "torch_plugin/ops/autograd.h"
#include "torch_plugin/ops/operation_call.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace internal {
namespace {

// The type in which the statistics of inputs of type `input` are computed.
at::ScalarType StatisticsType(at::ScalarType input) {
  return input == at::kDouble ? at::kDouble : at::kFloat;
}

// Returns `values` [C], one per channel, in a shape that broadcasts with
// `input` [N, C, ...].
at::Tensor PerChannel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

struct BatchStatistics {
  at::Tensor mean;  // [C], float64
  // Sum of the squared differences from the mean; [C], float64.
  at::Tensor squares;
  int64_t count = 0;  // number of values per channel

  at::Tensor Variance() const;          // biased; 0 if there is no value
  at::Tensor UnbiasedVariance() const;  // needs at least two values
};

at::Tensor BatchStatistics::Variance() const {
  return squares / static_cast<double>(std::max<int64_t>(count, 1));
}

at::Tensor BatchStatistics::UnbiasedVariance() const {
  return squares / static_cast<double>(count - 1);
}

// Computes the statistics of this rank's `input` [N, C, ...].
BatchStatistics LocalStatistics(const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  const int64_t channels = input.size(1);
  BatchStatistics result;
  result.count = channels == 0 ? 0 : input.numel() / channels;
  if (result.count == 0) {
    result.mean = at::zeros({channels}, at::kDouble);
    result.squares = at::zeros({channels}, at::kDouble);
    return result;
  }
  const auto [mean, variance] = at::batch_norm_update_stats(
      input.detach().to(StatisticsType(input.scalar_type())), {}, {},
      /*momentum=*/0.0);
  result.mean = mean.to(at::kDouble);
  result.squares = variance.to(at::kDouble) * result.count;
  return result;
}

// Computes the statistics of the mini-batches of all ranks of the process set.
// Collective, under the name `name`. Throws c10::Error on every rank if
// `local_error` is not empty on one (why its `input` cannot be used), if there
// is only one value per channel, or if only some ranks' inputs require a
// gradient.
//
// The variances of parts are combined as in Chan, Golub and LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances", 1979.
BatchStatistics GatherStatistics(const at::Tensor& input,
                                 const std::string& local_error,
                                 const std::string& name,
                                 const ProcessSet& process_set) {
  OperationCall call("SyncBatchNorm", name, process_set);
  call.request().collective = negotiation::Collective::kAllgather;
  call.SetLocalError(local_error);
  call.Prepare([&] {
    const BatchStatistics local = LocalStatistics(input);
    const at::Tensor header = at::zeros({2}, at::kDouble);
    header[0] = local.count;
    header[1] = RecordsGradients(input) ? 1 : 0;
    call.AddRows(at::cat({header, local.mean, local.squares}).unsqueeze(0));
  });
  const at::Tensor rows = call.Run()->result();
  const at::NoGradGuard no_grad;

  const auto with_gradient = rows.select(1, 1).sum().item<int64_t>();
  if (with_gradient != 0 && with_gradient != rows.size(0)) {
    ThrowError(absl::StrCat(
        "SyncBatchNorm '", name, "': the inputs of ", with_gradient, " of ",
        rows.size(0),
        " ranks require a gradient. Backward is a collective operation: pass "
        "inputs that require one on every rank or on none, and use the same "
        "GradMode"));
  }
  const int64_t channels = input.size(1);
  const at::Tensor counts = rows.slice(1, 0, 1);
  const at::Tensor means = rows.slice(1, 2, 2 + channels);
  const at::Tensor squares = rows.slice(1, 2 + channels);
  BatchStatistics result;
  result.count = counts.sum().item<int64_t>();
  if (result.count == 1) {
    ThrowError(absl::StrCat(
        "SyncBatchNorm '", name,
        "': there is a single value per channel over all ranks, which has no "
        "variance; use a larger batch"));
  }
  const at::Tensor shares =
      counts / static_cast<double>(std::max<int64_t>(result.count, 1));
  result.mean = (means * shares).sum(0);
  result.squares = (squares + counts * (means - result.mean).square()).sum(0);
  return result;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using OptionalTensor = torch::optional<at::Tensor>;

OptionalTensor Optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : torch::nullopt;
}

// An undefined tensor stays undefined.
at::Tensor To(at::ScalarType type, const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(type) : tensor;
}

// Returns (input - mean) / sqrt(variance + eps) * weight + bias per channel, in
// the dtype of `input`. Weight and bias may be undefined. The statistics are
// constants for autograd.
at::Tensor Normalize(const at::Tensor& input, const at::Tensor& mean,
                     const at::Tensor& variance, const at::Tensor& weight,
                     const at::Tensor& bias, double eps) {
  const at::ScalarType type = StatisticsType(input.scalar_type());
  return at::batch_norm(input.to(type), To(type, weight), To(type, bias),
                        mean.to(type), variance.to(type), /*training=*/false,
                        /*momentum=*/0.0, eps, /*cudnn_enabled=*/false)
      .to(input.scalar_type());
}

// Data for backward besides tensors.
struct Settings {
  double eps = 0;
  int64_t count = 0;            // values per channel over all ranks
  bool input_gradient = false;  // whether it is needed
  AllreduceOptions allreduce;   // options for backward's sums
};

class Normalization : public torch::autograd::Function<Normalization> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const OptionalTensor& weight,
                            const OptionalTensor& bias, const at::Tensor& mean,
                            const at::Tensor& variance, Settings settings) {
    context->save_for_backward(
        {input, weight.value_or(at::Tensor()), mean, variance});
    settings.input_gradient = input.requires_grad();
    Save(context, settings);
    return Normalize(input, mean, variance, weight.value_or(at::Tensor()),
                     bias.value_or(at::Tensor()), settings.eps);
  }

  // With x' = (x - mean) / sqrt(variance + eps), and n values per channel:
  //   dweight = sum(dy x'), dbias = sum(dy), over this rank's values;
  //   dx = weight / sqrt(variance + eps)
  //        * (dy - sum(dy) / n - x' sum(dy x') / n),
  // where the sums are over all ranks' values.
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      ThrowError(
          "SyncBatchNorm has no second derivative: call backward() without "
          "create_graph");
    }
    const variable_list saved = context->get_saved_variables();
    const auto settings = Saved<Settings>(context);
    const at::ScalarType dtype = saved[0].scalar_type();
    const at::ScalarType type = StatisticsType(dtype);
    const at::Tensor input = saved[0].to(type);
    const at::Tensor& weight = saved[1];
    const at::Tensor mean = saved[2].to(type);
    const at::Tensor variance = saved[3].to(type);
    const at::Tensor gradient = gradients.front().to(type);

    const auto [weight_gradient, bias_gradient] =
        LocalSums(input, gradient, mean, variance, settings.eps);
    at::Tensor input_gradient;
    if (settings.input_gradient) {
      const at::Tensor sums = at::stack({weight_gradient, bias_gradient})
                                  .to(at::kDouble)
                                  .contiguous();
      allreduce_(sums, settings.allreduce);
      sums.div_(static_cast<double>(std::max<int64_t>(settings.count, 1)));
      const at::Tensor scale = (variance + settings.eps).rsqrt();
      const at::Tensor normalized =
          (input - PerChannel(mean, input)) * PerChannel(scale, input);
      input_gradient = gradient - PerChannel(sums[1].to(type), input) -
                       normalized * PerChannel(sums[0].to(type), input);
      input_gradient.mul_(PerChannel(
          weight.defined() ? weight.to(type) * scale : scale, input));
      input_gradient = input_gradient.to(dtype);
    }
    if (!weight.defined()) return {input_gradient, {}, {}, {}, {}, {}};
    return {input_gradient,
            weight_gradient.to(weight.scalar_type()),
            bias_gradient.to(weight.scalar_type()),
            {},
            {},
            {}};
  }

 private:
  // Returns dweight and dbias.
  static std::tuple<at::Tensor, at::Tensor> LocalSums(
      const at::Tensor& input, const at::Tensor& gradient,
      const at::Tensor& mean, const at::Tensor& variance, double eps) {
    if (input.numel() == 0) {
      return {at::zeros_like(mean), at::zeros_like(mean)};
    }
    at::Tensor weight_gradient;
    at::Tensor bias_gradient;
    // Both are the same with constant statistics, as in evaluation.
    std::tie(std::ignore, weight_gradient, bias_gradient) =
        at::native_batch_norm_backward(gradient, input, {}, mean, variance, {},
                                       {}, /*train=*/false, eps,
                                       {false, true, true});
    return {weight_gradient, bias_gradient};
  }
};

// Like Normalize(), with the statistics of the inputs of all ranks of the
// process set. `input` requires a gradient on all ranks or on none. If it does,
// backward is collective, under the name "<name>.backward".
at::Tensor NormalizeSynchronized(const at::Tensor& input,
                                 const at::Tensor& weight,
                                 const at::Tensor& bias,
                                 const BatchStatistics& statistics, double eps,
                                 const std::string& name,
                                 const ProcessSet& process_set) {
  Settings settings;
  settings.eps = eps;
  settings.count = statistics.count;
  settings.allreduce = AllreduceOptions()
                           .name(absl::StrCat(name, ".backward"))
                           .op(ReduceOp::Sum)
                           .process_set(process_set);
  return Normalization::apply(input, Optional(weight), Optional(bias),
                              statistics.mean, statistics.Variance(), settings);
}

}  // namespace
}  // namespace internal

namespace {

// Why `input` is not [N, C, ...] of a supported dtype. Empty: it is.
std::string InputError(const at::Tensor& input, int64_t num_features) {
  if (!input.defined()) return "the input is undefined";
  const at::ScalarType type = input.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf &&
      type != at::kBFloat16) {
    return absl::StrCat("dtype ", c10::toString(type),
                        " is not supported; use float32, float64, float16 or "
                        "bfloat16");
  }
  if (input.layout() != at::kStrided || !input.device().is_cpu()) {
    return "only dense CPU tensors are supported";
  }
  if (input.dim() < 2 || input.size(1) != num_features) {
    return absl::StrCat("the input's shape is [",
                        absl::StrJoin(input.sizes(), ", "),
                        "], but must be [N, ", num_features,
                        ", ...] for num_features ", num_features);
  }
  return "";
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(int64_t num_features)
    : SyncBatchNormImpl(torch::nn::BatchNormOptions(num_features)) {}

SyncBatchNormImpl::SyncBatchNormImpl(
    const torch::nn::BatchNormOptions& batch_norm_options,
    ProcessSet process_set)
    : options(batch_norm_options), process_set_(std::move(process_set)) {
  SyncBatchNormImpl::reset();
}

void SyncBatchNormImpl::reset() {
  const int64_t features = options.num_features();
  if (options.affine()) {
    weight = register_parameter("weight", at::empty({features}));
    bias = register_parameter("bias", at::empty({features}));
  } else {
    weight = register_parameter("weight", {}, /*requires_grad=*/false);
    bias = register_parameter("bias", {}, /*requires_grad=*/false);
  }
  if (options.track_running_stats()) {
    running_mean = register_buffer("running_mean", at::zeros({features}));
    running_var = register_buffer("running_var", at::ones({features}));
    num_batches_tracked =
        register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
  } else {
    running_mean = register_buffer("running_mean", {});
    running_var = register_buffer("running_var", {});
    num_batches_tracked = register_buffer("num_batches_tracked", {});
  }
  reset_parameters();
}

void SyncBatchNormImpl::reset_running_stats() {
  if (!options.track_running_stats()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

void SyncBatchNormImpl::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  torch::nn::init::ones_(weight);
  torch::nn::init::zeros_(bias);
}

const std::string& SyncBatchNormImpl::Name::In(
    const std::shared_ptr<internal::World>& world,
    const ProcessSet& process_set) {
  const internal::Members members = internal::ValueOrThrow(
      internal::MembersOf(*world, process_set.state(), "SyncBatchNorm"));
  if (world_.lock() != world || joins_ != world->joins()) {
    joins_ = world->joins();
    name_ = world->NextName("sync_batch_norm", members.id);
    world_ = world;
  }
  return name_;
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  const std::string local_error = InputError(input, options.num_features());
  if (!is_training() && options.track_running_stats()) {
    if (!local_error.empty()) {
      internal::ThrowError(absl::StrCat("SyncBatchNorm: ", local_error));
    }
    return internal::Normalize(input, running_mean, running_var, weight, bias,
                               options.eps());
  }
  const std::string& name = name_.In(internal::CurrentWorld(), process_set_);
  const internal::BatchStatistics statistics =
      internal::GatherStatistics(input, local_error, name, process_set_);
  if (is_training() && options.track_running_stats()) {
    const at::NoGradGuard no_grad;
    num_batches_tracked += 1;
    const double factor = options.momentum().value_or(
        1.0 / static_cast<double>(num_batches_tracked.item<int64_t>()));
    if (statistics.count > 0) {
      running_mean.mul_(1 - factor)
          .add_(statistics.mean.to(running_mean.scalar_type()), factor);
      running_var.mul_(1 - factor)
          .add_(statistics.UnbiasedVariance().to(running_var.scalar_type()),
                factor);
    }
  }
  return internal::NormalizeSynchronized(input, weight, bias, statistics,
                                         options.eps(), name, process_set_);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "hvdlite::SyncBatchNorm("
         << options.num_features() << ", eps=" << options.eps()
         << ", momentum=";
  if (options.momentum().has_value()) {
    stream << *options.momentum();
  } else {
    stream << "None";
  }
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

}  // namespace hvdlite
