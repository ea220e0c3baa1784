// A small task of each synthetic model, for tests that cover all models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

struct SmallTask {
  SyntheticTaskOptions options;
  // Parameters with the published sizes; 0: tested in resnet_test, or
  // unpublished.
  int64_t parameters = 0;
  // True if a few steps of Adam reduce the loss.
  bool learns_fast = false;
  // The beginning of the names of parameters that never get a gradient.
  std::string without_gradient = "none";
};

// Numbers of parameters of a layer.
constexpr int64_t Linear(int64_t inputs, int64_t outputs) {
  return inputs * outputs + outputs;
}
constexpr int64_t Convolution(int64_t inputs, int64_t outputs, int64_t kernel) {
  return Linear(inputs * kernel, outputs);
}
// LSTM has four gates, GRU three.
constexpr int64_t Recurrent(int64_t gates, int64_t inputs, int64_t units) {
  return gates * units * (inputs + units + 2);
}

// Returns tasks of all models except the deeper ResNets.
inline std::vector<SmallTask> SmallTasks() {
  // The paper states 17.5 million.
  constexpr int64_t kConv3d =
      Convolution(3, 64, 27) + Convolution(64, 128, 27) +
      Convolution(128, 256, 27) + 2 * Convolution(256, 256, 27) +
      Linear(256 * 16, 2048) + Linear(2048, 2048) + Linear(2048, 101);
  static_assert(kConv3d == 17'444'965);
  constexpr int64_t kTranslator =
      32'317 * 1024 +                                            // embedding
      4 * Recurrent(4, 1024, 1024) + Recurrent(4, 2048, 1024) +  // encoder
      Recurrent(4, 1024, 1024) + 3 * Recurrent(4, 2048, 1024) +  // decoder
      2 * 1024 * 1024 + 2 * 1024 + 1 +                           // attention
      Linear(1024, 32'317);
  constexpr int64_t kNorm = 256 + 256;
  constexpr int64_t kAttention = 3 * Linear(256, 512) + Linear(512, 256);
  constexpr int64_t kFeedForward = Linear(256, 512) + Linear(512, 256);
  constexpr int64_t kTransformer =
      Linear(21, 256) +      // unused
      25 * 256 + 12 * 256 +  // embeddings
      2 * (kAttention + kFeedForward + 2 * kNorm) +
      2 * (2 * kAttention + kFeedForward + 3 * kNorm) + 256 * 12;
  static_assert(kTransformer == 4'231'424);
  constexpr int64_t kLanguageModel =
      256 * 256 + 256 * 256 +  // embeddings of tokens and of positions
      4 * (4 * Linear(256, 256) + Linear(256, 1024) + Linear(1024, 256)) +
      (4 * 2 + 1) * kNorm;
  constexpr int64_t kFramePolicy =
      Convolution(4, 32, 64) + Convolution(32, 64, 16) +
      Convolution(64, 32, 9) + Linear(32 * 49, 512) + Linear(512, 6 + 1);
  constexpr int64_t kSuperResolution =
      Convolution(1, 64, 25) + Convolution(64, 64, 9) + Convolution(64, 32, 9) +
      Convolution(32, 4, 9);
  // VGG-16's first ten convolutions.
  constexpr int64_t kVgg16To43 =
      Convolution(3, 64, 9) + Convolution(64, 64, 9) + Convolution(64, 128, 9) +
      Convolution(128, 128, 9) + Convolution(128, 256, 9) +
      2 * Convolution(256, 256, 9) + Convolution(256, 512, 9) +
      2 * Convolution(512, 512, 9);
  return {
      {{.model = "resnet18", .batch_size = 4, .image_size = 32}},
      {{.model = "resnet50", .batch_size = 4, .image_size = 32}},
      {{.model = "alexnet",
        .batch_size = 2,
        .image_size = 63,
        .hidden = 64,
        .data_format = "NHWC"},
       61'100'840},
      {{.model = "vgg16",
        .batch_size = 2,
        .image_size = 32,
        .hidden = 64,
        .data_format = "NHWC"},
       138'357'544},
      {{.model = "conv3d", .batch_size = 2, .width = 2, .hidden = 64}, kConv3d},
      {{.model = "conv3d_volumes", .batch_size = 1}},
      {{.model = "ssd300", .batch_size = 1, .classes = 3}, 0, true},
      {{.model = "lstm_layer",
        .batch_size = 4,
        .sequence_length = 3,
        .hidden = 8},
       Recurrent(4, 500, 500)},
      {{.model = "lstm", .batch_size = 4},
       Recurrent(4, 28, 128) + Recurrent(4, 128, 128) + Linear(128, 10)},
      {{.model = "wave_predictor", .batch_size = 4, .sequence_length = 30},
       Recurrent(4, 1, 51) + Recurrent(4, 51, 51) + Linear(51, 1),
       true},
      {{.model = "word_language_model",
        .batch_size = 2,
        .classes = 20,
        .sequence_length = 5,
        .hidden = 16},
       10'000 * 200 + 2 * Recurrent(4, 200, 200) + Linear(200, 10'000),
       true},
      {{.model = "word_language_model_gru",
        .batch_size = 2,
        .classes = 20,
        .sequence_length = 5,
        .hidden = 16},
       33'278 * 656 + 2 * Recurrent(3, 656, 656) + Linear(656, 33'278),
       true},
      {{.model = "transformer", .batch_size = 4, .sequence_length = 8},
       kTransformer,
       false,
       "encoder.linear."},
      {{.model = "translator",
        .batch_size = 2,
        .classes = 20,
        .sequence_length = 5,
        .hidden = 16},
       kTranslator,
       true},
      {{.model = "language_model", .batch_size = 4, .sequence_length = 8},
       kLanguageModel},
      {{.model = "neural_collaborative_filtering", .batch_size = 4},
       (6040 + 3706) * (8 + 32) + Linear(64, 32) + Linear(32, 16) +
           Linear(16, 8) + Linear(8 + 8, 1)},
      {{.model = "neural_collaborative_filtering_20m", .batch_size = 1},
       (138'493 + 26'744) * (64 + 128) + Linear(256, 256) + Linear(256, 128) +
           Linear(128, 64) + Linear(64 + 64, 1)},
      {{.model = "mlp", .batch_size = 4},
       Linear(784, 512) + Linear(512, 512) + Linear(512, 10)},
      {{.model = "polynomial_regression", .batch_size = 256},
       Linear(4, 1),
       true},
      {{.model = "dcgan", .batch_size = 4, .width = 8, .data_format = "NHWC"},
       3'576'704 + 2'765'568},
      {{.model = "vae", .batch_size = 4}, 652'824},
      {{.model = "super_resolution",
        .batch_size = 2,
        .image_size = 16,
        .data_format = "NHWC"},
       kSuperResolution,
       true},
      {{.model = "style_transfer", .batch_size = 1, .image_size = 16},
       1'679'235 + kVgg16To43,
       true,
       "judge."},
      {{.model = "cart_pole", .batch_size = 50},
       Linear(4, 128) + Linear(128, 2)},
      {{.model = "ball_game", .batch_size = 1, .sequence_length = 8},
       kFramePolicy}};
}

}  // namespace hvdlite::trainers
