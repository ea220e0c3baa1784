#include "torch_plugin/state/synchronized_normalization.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Optional.h>
#include <hvdlite/ops.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "torch_plugin/ops/saved_value.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using OptionalTensor = c10::optional<at::Tensor>;

OptionalTensor Optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : c10::nullopt;
}

// Undefined stays undefined.
at::Tensor To(at::ScalarType type, const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(type) : tensor;
}

// What backward needs besides tensors.
struct Settings {
  double eps = 0;
  int64_t count = 0;            // of values per channel, over all ranks
  bool input_gradient = false;  // whether it is wanted
  AllreduceOptions allreduce;   // of backward's sums
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
  // dweight and dbias.
  static std::tuple<at::Tensor, at::Tensor> LocalSums(
      const at::Tensor& input, const at::Tensor& gradient,
      const at::Tensor& mean, const at::Tensor& variance, double eps) {
    if (input.numel() == 0) {
      return {at::zeros_like(mean), at::zeros_like(mean)};
    }
    at::Tensor weight_gradient;
    at::Tensor bias_gradient;
    // With constant statistics, as in evaluation, these two are the same.
    std::tie(std::ignore, weight_gradient, bias_gradient) =
        at::native_batch_norm_backward(gradient, input, {}, mean, variance, {},
                                       {}, /*train=*/false, eps,
                                       {false, true, true});
    return {weight_gradient, bias_gradient};
  }
};

}  // namespace

at::Tensor Normalize(const at::Tensor& input, const at::Tensor& mean,
                     const at::Tensor& variance, const at::Tensor& weight,
                     const at::Tensor& bias, double eps) {
  const at::ScalarType type = StatisticsType(input.scalar_type());
  return at::batch_norm(input.to(type), To(type, weight), To(type, bias),
                        mean.to(type), variance.to(type), /*training=*/false,
                        /*momentum=*/0.0, eps, /*cudnn_enabled=*/false)
      .to(input.scalar_type());
}

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

}  // namespace hvdlite::internal
