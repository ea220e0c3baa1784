// Single kernels that studies of LibTorch on CPUs measure: convolution of
// volumes, and one LSTM layer.
#include <torch/nn.h>
#include <torch/types.h>

#include <tuple>

#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

namespace nn = torch::nn;

// The network of github.com/MlWoo/PyTorch-benchmark ("berkely"), with which
// NERSC's PyTorch wheels were measured: four 3-d convolutions without
// activations, on 4 volumes of 35 x 35 x 20.
SyntheticTask MakeConv3dVolumesTask(const SyntheticTaskOptions& options) {
  constexpr int64_t kClasses = 512;
  const at::Generator random = GeneratorOf(options);
  const auto convolution = [](int64_t from, int64_t to) {
    return nn::Conv3d(nn::Conv3dOptions(from, to, 3));
  };
  nn::Sequential model(
      convolution(1, 64), convolution(64, 64), nn::MaxPool3d(2),
      convolution(64, 128), convolution(128, 128), nn::MaxPool3d(2),
      nn::Flatten(), nn::Linear(128 * 5 * 5 * 2, kClasses),
      nn::Linear(kClasses, kClasses));
  const torch::Tensor volumes =
      torch::randn({options.batch_size, 1, 35, 35, 20}, random);
  const torch::Tensor labels =
      torch::randint(kClasses, {options.batch_size}, random, torch::kInt64);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return nn::functional::cross_entropy(model->forward(volumes),
                                                 labels);
          }};
}

// The network of github.com/xhzhao/pytorch-rnn-benchmark: the layer is as wide
// as its input, 500 by default, and 50 steps long. The loss is the mean
// absolute difference between its outputs and random ones.
SyntheticTask MakeLstmLayerTask(const SyntheticTaskOptions& options) {
  const int64_t width = SizeOr(options.hidden, 500);
  const int64_t length = SizeOr(options.sequence_length, 50);
  const at::Generator random = GeneratorOf(options);
  nn::LSTM model(nn::LSTMOptions(width, width));
  const torch::Tensor inputs =
      torch::randn({length, options.batch_size, width}, random);
  const torch::Tensor targets =
      torch::randn({length, options.batch_size, width}, random);
  return {.model = model.ptr(), .loss = [=]() mutable {
            return nn::functional::l1_loss(std::get<0>(model(inputs)), targets);
          }};
}

}  // namespace hvdlite::trainers
