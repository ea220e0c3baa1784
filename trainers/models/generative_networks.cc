#include "trainers/models/generative_networks.h"

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

constexpr double kDcganDeviation = 0.02;
constexpr double kLeakySlope = 0.2;

// Doubles the resolution; with stride 1 and no padding, turns 1x1 into 4x4.
nn::ConvTranspose2d Enlarge(int64_t in, int64_t out, int64_t stride = 2,
                            int64_t padding = 1) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 4)
                                 .stride(stride)
                                 .padding(padding)
                                 .bias(false));
}

// Halves the resolution; with stride 1 and no padding, turns 4x4 into 1x1.
nn::Conv2d Reduce(int64_t in, int64_t out, int64_t stride = 2,
                  int64_t padding = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 4)
                        .stride(stride)
                        .padding(padding)
                        .bias(false));
}

nn::LeakyReLU Leaky() {
  return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(kLeakySlope));
}

void InitialiseAsDcgan(nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* norm = module->as<nn::BatchNorm2d>()) {
      norm->weight.normal_(1.0, kDcganDeviation);
    } else if (auto* convolution = module->as<nn::Conv2d>()) {
      convolution->weight.normal_(0.0, kDcganDeviation);
    } else if (auto* transposed = module->as<nn::ConvTranspose2d>()) {
      transposed->weight.normal_(0.0, kDcganDeviation);
    }
  }
}

}  // namespace

DcganGeneratorImpl::DcganGeneratorImpl(const DcganOptions& options) {
  const int64_t width = options.width;
  layers_->push_back(
      Enlarge(options.latent, 8 * width, /*stride=*/1, /*padding=*/0));
  for (int64_t channels = 8 * width; channels > width; channels /= 2) {
    layers_->push_back(nn::BatchNorm2d(channels));
    layers_->push_back(nn::ReLU());
    layers_->push_back(Enlarge(channels, channels / 2));
  }
  layers_->push_back(nn::BatchNorm2d(width));
  layers_->push_back(nn::ReLU());
  layers_->push_back(Enlarge(width, options.image_channels));
  layers_->push_back(nn::Tanh());
  register_module("layers", layers_);
  InitialiseAsDcgan(*this);
}

torch::Tensor DcganGeneratorImpl::forward(const torch::Tensor& noise) {
  return layers_->forward(noise.unsqueeze(-1).unsqueeze(-1));
}

DcganDiscriminatorImpl::DcganDiscriminatorImpl(const DcganOptions& options) {
  const int64_t width = options.width;
  layers_->push_back(Reduce(options.image_channels, width));
  layers_->push_back(Leaky());
  for (int64_t channels = width; channels < 8 * width; channels *= 2) {
    layers_->push_back(Reduce(channels, 2 * channels));
    layers_->push_back(nn::BatchNorm2d(2 * channels));
    layers_->push_back(Leaky());
  }
  layers_->push_back(Reduce(8 * width, 1, /*stride=*/1, /*padding=*/0));
  register_module("layers", layers_);
  InitialiseAsDcgan(*this);
}

torch::Tensor DcganDiscriminatorImpl::forward(const torch::Tensor& images) {
  return layers_->forward(images).flatten();
}

VaeImpl::VaeImpl(const VaeOptions& options)
    : encoder_(register_module("encoder",
                               nn::Linear(options.pixels, options.hidden))),
      mean_(
          register_module("mean", nn::Linear(options.hidden, options.latent))),
      log_variance_(register_module(
          "log_variance", nn::Linear(options.hidden, options.latent))),
      decoder_(register_module("decoder",
                               nn::Linear(options.latent, options.hidden))),
      output_(register_module("output",
                              nn::Linear(options.hidden, options.pixels))) {}

VaeOutput VaeImpl::forward(const torch::Tensor& images) {
  const torch::Tensor hidden = torch::relu(encoder_(images.flatten(1)));
  const torch::Tensor mean = mean_(hidden);
  const torch::Tensor log_variance = log_variance_(hidden);
  torch::Tensor code = mean;
  if (is_training()) {
    code = mean + torch::exp(0.5 * log_variance) * torch::randn_like(mean);
  }
  return {output_(torch::relu(decoder_(code))), mean, log_variance};
}

torch::Tensor VaeLoss(const VaeOutput& output, const torch::Tensor& images) {
  const torch::Tensor cross_entropy =
      nn::functional::binary_cross_entropy_with_logits(
          output.logits, images.flatten(1),
          nn::functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(
              torch::kSum));
  const torch::Tensor divergence =
      -0.5 * torch::sum(1 + output.log_variance - output.mean.square() -
                        output.log_variance.exp());
  return cross_entropy + divergence;
}

}  // namespace hvdlite::trainers
