#include "trainers/models/resnet.h"

#include <torch/nn/init.h>

#include <stdexcept>

namespace hvdlite::trainers {
namespace {

namespace nn = torch::nn;

nn::Conv2d Conv3x3(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

nn::Conv2d Conv1x1(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false));
}

// The strides of a block's first and second convolution.
struct Strides {
  int64_t first = 1;
  int64_t second = 1;
};

// The end of a block. It adds and applies ReLU in place, which saves a third of
// the memory for activations: backward passes need only the results.
torch::Tensor AddShortcut(torch::Tensor& branch, const torch::Tensor& input,
                          nn::Sequential& shortcut) {
  return branch.add_(shortcut ? shortcut->forward(input) : input).relu_();
}

// Two 3x3 convolutions with a shortcut around them.
class BasicBlockImpl : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 1;

  BasicBlockImpl(int64_t in, int64_t width, Strides strides,
                 nn::Sequential shortcut)
      : conv1_(register_module("conv1", Conv3x3(in, width, strides.first))),
        bn1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", Conv3x3(width, width, strides.second))),
        bn2_(register_module("bn2", nn::BatchNorm2d(width))),
        shortcut_(std::move(shortcut)) {
    if (shortcut_) register_module("downsample", shortcut_);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor branch = bn1_(conv1_(input)).relu_();
    branch = bn2_(conv2_(branch));
    return AddShortcut(branch, input, shortcut_);
  }

  torch::Tensor& last_scale() { return bn2_->weight; }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Sequential shortcut_;
};

// Convolutions 1x1 (fewer channels), 3x3, 1x1 (more channels) with a shortcut
// around them.
class BottleneckImpl : public nn::Module {
 public:
  static constexpr int64_t kExpansion = 4;

  BottleneckImpl(int64_t in, int64_t width, Strides strides,
                 nn::Sequential shortcut)
      : conv1_(register_module("conv1", Conv1x1(in, width, strides.first))),
        bn1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", Conv3x3(width, width, strides.second))),
        bn2_(register_module("bn2", nn::BatchNorm2d(width))),
        conv3_(register_module("conv3", Conv1x1(width, width * kExpansion, 1))),
        bn3_(register_module("bn3", nn::BatchNorm2d(width * kExpansion))),
        shortcut_(std::move(shortcut)) {
    if (shortcut_) register_module("downsample", shortcut_);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor branch = bn1_(conv1_(input)).relu_();
    branch = bn2_(conv2_(branch)).relu_();
    branch = bn3_(conv3_(branch));
    return AddShortcut(branch, input, shortcut_);
  }

  torch::Tensor& last_scale() { return bn3_->weight; }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
  nn::Sequential shortcut_;
};

// One stage of `blocks` blocks. The first block has `strides` and, if the shape
// changes, a projection as its shortcut. `channels` is the number of channels
// of the input before the call and of the output after it.
template <typename Block>
nn::Sequential MakeStage(int64_t& channels, int64_t width, int64_t blocks,
                         Strides strides) {
  const int64_t out = width * Block::kExpansion;
  nn::Sequential stage;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t stride = strides.first * strides.second;
    nn::Sequential shortcut{nullptr};
    if (stride != 1 || channels != out) {
      shortcut =
          nn::Sequential(Conv1x1(channels, out, stride), nn::BatchNorm2d(out));
    }
    stage->push_back(
        std::make_shared<Block>(channels, width, strides, shortcut));
    strides = {};
    channels = out;
  }
  return stage;
}

nn::Sequential MakeStage(const ResNetArchitecture& architecture, size_t index,
                         int64_t& channels, int64_t first_stride) {
  const auto make = architecture.bottleneck ? MakeStage<BottleneckImpl>
                                            : MakeStage<BasicBlockImpl>;
  const bool in_second = architecture.bottleneck && !architecture.stride_in_1x1;
  return make(channels, architecture.widths[index], architecture.blocks[index],
              in_second ? Strides{.second = first_stride}
                        : Strides{.first = first_stride});
}

// The stem for large images: with its pooling it divides their sides by four.
nn::Conv2d StemConvolution(int64_t channels) {
  return nn::Conv2d(
      nn::Conv2dOptions(3, channels, 7).stride(2).padding(3).bias(false));
}

nn::MaxPool2d StemPooling() {
  return nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1));
}

// Initialisation of He et al., "Delving Deep into Rectifiers" (ICCV 2015), with
// the fan-out.
void InitialiseConvolutions(nn::Module& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* convolution = module->as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(convolution->weight, 0.0, torch::kFanOut,
                                torch::kReLU);
    }
  }
}

void ZeroResidualBranches(nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (auto* basic = module->as<BasicBlockImpl>()) {
      basic->last_scale().zero_();
    } else if (auto* bottleneck = module->as<BottleneckImpl>()) {
      bottleneck->last_scale().zero_();
    }
  }
}

}  // namespace

const std::vector<ResNetArchitecture>& ResNetArchitectures() {
  static const std::vector<ResNetArchitecture> architectures = {
      {"resnet8", false, {1, 1, 1}, {16, 32, 64}},
      {"resnet18", false, {2, 2, 2, 2}, {64, 128, 256, 512}},
      {"resnet34", false, {3, 4, 6, 3}, {64, 128, 256, 512}},
      {"resnet50", true, {3, 4, 6, 3}, {64, 128, 256, 512}},
      {"resnet50_v1", true, {3, 4, 6, 3}, {64, 128, 256, 512}, true},
      {"resnet101", true, {3, 4, 23, 3}, {64, 128, 256, 512}},
      {"resnet152", true, {3, 8, 36, 3}, {64, 128, 256, 512}},
  };
  return architectures;
}

const ResNetArchitecture& FindResNetArchitecture(const std::string& name) {
  std::string known;
  for (const ResNetArchitecture& architecture : ResNetArchitectures()) {
    if (architecture.name == name) return architecture;
    known += (known.empty() ? "" : ", ") + architecture.name;
  }
  throw std::invalid_argument("unknown architecture '" + name +
                              "'; known names are " + known);
}

ResNetImpl::ResNetImpl(const ResNetOptions& options) {
  const ResNetArchitecture& architecture =
      FindResNetArchitecture(options.architecture);
  int64_t channels = architecture.widths.front();
  if (options.small_image_stem) {
    conv1_ = register_module("conv1", Conv3x3(3, channels, 1));
  } else {
    conv1_ = register_module("conv1", StemConvolution(channels));
    max_pool_ = register_module("maxpool", StemPooling());
  }
  bn1_ = register_module("bn1", nn::BatchNorm2d(channels));
  for (size_t i = 0; i < architecture.blocks.size(); ++i) {
    stages_.push_back(register_module(
        "layer" + std::to_string(i + 1),
        MakeStage(architecture, i, channels, /*first_stride=*/i == 0 ? 1 : 2)));
  }
  fc_ = register_module("fc", nn::Linear(channels, options.classes));
  InitialiseConvolutions(*this);
  if (options.zero_init_residual) ZeroResidualBranches(*this);
}

torch::Tensor ResNetImpl::forward(torch::Tensor images) {
  torch::Tensor features = bn1_(conv1_(images)).relu_();
  if (max_pool_ && features.is_mkldnn()) {
    // LibTorch 2.x has no max_pool2d for this layout.
    const nn::MaxPool2dOptions& pooling = max_pool_->options;
    features = at::mkldnn_max_pool2d(features, pooling.kernel_size(),
                                     pooling.stride(), pooling.padding());
  } else if (max_pool_) {
    features = max_pool_(features);
  }
  for (nn::Sequential& stage : stages_) features = stage->forward(features);
  features = torch::adaptive_avg_pool2d(features, {1, 1});
  if (features.is_mkldnn()) features = features.to_dense();
  return fc_(features.flatten(1));
}

nn::Sequential MakeResNetTrunk(const std::string& architecture,
                               const std::vector<int64_t>& strides) {
  const ResNetArchitecture& found = FindResNetArchitecture(architecture);
  int64_t channels = found.widths.front();
  nn::Sequential trunk(StemConvolution(channels), nn::BatchNorm2d(channels),
                       nn::ReLU(), StemPooling());
  for (size_t i = 0; i < strides.size(); ++i) {
    const nn::Sequential stage = MakeStage(found, i, channels, strides[i]);
    for (const nn::AnyModule& block : *stage) trunk->push_back(block);
  }
  InitialiseConvolutions(*trunk);
  return trunk;
}

void SetMemoryFormat(torch::nn::Module& model, at::MemoryFormat format) {
  for (torch::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.detach().contiguous(format));
    }
  }
}

}  // namespace hvdlite::trainers
