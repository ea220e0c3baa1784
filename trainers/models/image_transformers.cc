#include "trainers/models/image_transformers.h"

#include <cmath>
#include <string>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

nn::Conv2d Convolution(int64_t in, int64_t out, int64_t kernel) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
}

// A convolution with padding by reflection.
void AddConvolution(nn::Sequential& layers, int64_t in, int64_t out,
                    int64_t kernel, int64_t stride = 1) {
  layers->push_back(nn::ReflectionPad2d(kernel / 2));
  layers->push_back(
      nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride)));
}

void AppendNorm(nn::Sequential& layers, int64_t channels) {
  layers->push_back(
      nn::InstanceNorm2d(nn::InstanceNorm2dOptions(channels).affine(true)));
}

void AddNormAndRelu(nn::Sequential& layers, int64_t channels) {
  AppendNorm(layers, channels);
  layers->push_back(nn::ReLU());
}

// Two convolutions with a shortcut around them.
class ResidualImpl : public nn::Module {
 public:
  explicit ResidualImpl(int64_t channels) {
    AddConvolution(branch_, channels, channels, 3);
    AddNormAndRelu(branch_, channels);
    AddConvolution(branch_, channels, channels, 3);
    AppendNorm(branch_, channels);
    register_module("branch", branch_);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    return input + branch_->forward(input);
  }

 private:
  nn::Sequential branch_;
};
TORCH_MODULE(Residual);

constexpr int64_t kResidualBlocks = 5;

// The layers of VGG-16 up to relu4_3.
struct LossStage {
  int64_t convolutions;
  int64_t channels;
};
constexpr LossStage kLossStages[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}};

constexpr size_t kContentStage = 1;
constexpr double kContentWeight = 1e5;
constexpr double kStyleWeight = 1e10;

}  // namespace

SuperResolutionImpl::SuperResolutionImpl(
    const SuperResolutionOptions& options) {
  const std::vector<nn::Conv2d> convolutions = {
      Convolution(1, 64, 5), Convolution(64, 64, 3), Convolution(64, 32, 3),
      Convolution(32, options.factor * options.factor, 3)};
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const bool last = i + 1 == convolutions.size();
    nn::init::orthogonal_(convolutions[i]->weight, last ? 1.0 : std::sqrt(2.0));
    layers_->push_back(convolutions[i]);
    if (!last) layers_->push_back(nn::ReLU());
  }
  layers_->push_back(nn::PixelShuffle(options.factor));
  register_module("layers", layers_);
}

torch::Tensor SuperResolutionImpl::forward(const torch::Tensor& images) {
  return layers_->forward(images);
}

StyleTransferImpl::StyleTransferImpl() {
  AddConvolution(layers_, 3, 32, 9);
  AddNormAndRelu(layers_, 32);
  for (const int64_t channels : {64, 128}) {
    AddConvolution(layers_, channels / 2, channels, 3, /*stride=*/2);
    AddNormAndRelu(layers_, channels);
  }
  for (int64_t i = 0; i < kResidualBlocks; ++i) {
    layers_->push_back(Residual(128));
  }
  for (const int64_t channels : {64, 32}) {
    layers_->push_back(nn::Upsample(
        nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2})));
    AddConvolution(layers_, 2 * channels, channels, 3);
    AddNormAndRelu(layers_, channels);
  }
  AddConvolution(layers_, 32, 3, 9);
  register_module("layers", layers_);
}

torch::Tensor StyleTransferImpl::forward(const torch::Tensor& images) {
  return layers_->forward(images);
}

VggFeaturesImpl::VggFeaturesImpl() {
  int64_t channels = 3;
  for (const LossStage& stage : kLossStages) {
    nn::Sequential layers;
    if (channels > 3) layers->push_back(nn::MaxPool2d(2));
    for (int64_t i = 0; i < stage.convolutions; ++i) {
      const nn::Conv2d convolution = Convolution(channels, stage.channels, 3);
      nn::init::kaiming_normal_(convolution->weight, 0.0, torch::kFanOut,
                                torch::kReLU);
      layers->push_back(convolution);
      layers->push_back(nn::ReLU());
      channels = stage.channels;
    }
    stages_.push_back(
        register_module("stage" + std::to_string(stages_.size() + 1), layers));
  }
  for (torch::Tensor& parameter : parameters()) {
    parameter.set_requires_grad(false);
  }
}

std::vector<torch::Tensor> VggFeaturesImpl::forward(
    const torch::Tensor& images) {
  std::vector<torch::Tensor> features;
  for (nn::Sequential& stage : stages_) {
    features.push_back(
        stage->forward(features.empty() ? images : features.back()));
  }
  return features;
}

std::vector<torch::Tensor> GramMatrices(
    const std::vector<torch::Tensor>& features) {
  std::vector<torch::Tensor> matrices;
  for (const torch::Tensor& map : features) {
    const torch::Tensor channels = map.to(torch::kFloat32).flatten(2);
    matrices.push_back(
        channels.bmm(channels.transpose(1, 2)) /
        static_cast<double>(channels.size(1) * channels.size(2)));
  }
  return matrices;
}

torch::Tensor PerceptualLoss(const std::vector<torch::Tensor>& features,
                             const std::vector<torch::Tensor>& content,
                             const std::vector<torch::Tensor>& style) {
  torch::Tensor loss = kContentWeight * torch::mse_loss(features[kContentStage],
                                                        content[kContentStage]);
  const std::vector<torch::Tensor> matrices = GramMatrices(features);
  for (size_t i = 0; i < matrices.size(); ++i) {
    loss =
        loss + kStyleWeight * torch::mse_loss(matrices[i],
                                              style[i].expand_as(matrices[i]));
  }
  return loss;
}

}  // namespace hvdlite::trainers
