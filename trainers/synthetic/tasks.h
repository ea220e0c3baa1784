// The tasks of train_synthetic: a model and one random batch for it. The
// registry of synthetic models calls the functions below.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/MemoryFormat.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace hvdlite::trainers {

class DcganGenerator;
class DcganDiscriminator;

struct SyntheticTask {
  // Null if the task trains nothing.
  std::shared_ptr<torch::nn::Module> model;
  // Computes the mean loss of the batch, a scalar; each call computes it again.
  std::function<torch::Tensor()> loss;
  // Number of updates per batch: calls of loss(), each with an optimizer step.
  int64_t updates = 1;
};

// A size of 0 means the value of the model's publication.
struct SyntheticTaskOptions {
  std::string model = "resnet50";
  int64_t batch_size = 32;  // per rank
  int64_t image_size = 0;   // pixels a side
  int64_t classes = 0;      // or words in the vocabulary
  int64_t sequence_length = 0;
  int64_t width = 0;                 // channels of the narrowest convolution
  int64_t hidden = 0;                // width of the hidden layers
  std::string data_format = "NCHW";  // or "NHWC"
  std::string data_dir = {};         // of images; empty: random images
  int workers = 0;                   // loading threads; 0: the caller loads
  uint64_t seed = 0;                 // for the batch
};

// The random generator for a task's batch.
at::Generator GeneratorOf(const SyntheticTaskOptions& options);

// Returns `size`, or `published` if it is 0.
int64_t SizeOr(int64_t size, int64_t published);

at::MemoryFormat MemoryFormatOf(const SyntheticTaskOptions& options);

// Training with cross entropy. `model` computes logits [..., classes] from
// `inputs`; `labels` [...] are int64.
template <typename Model>
SyntheticTask Classification(Model model, torch::Tensor inputs,
                             torch::Tensor labels) {
  return {.model = model.ptr(), .loss = [model, inputs, labels]() mutable {
            return torch::nn::functional::cross_entropy(
                model(inputs).flatten(0, -2).to(torch::kFloat32),
                labels.flatten());
          }};
}

// Returns the discriminator's binary cross entropy for `images` [N, C, 64, 64]
// and for the images that the generator makes of `noise` [N, latent], plus the
// generator's loss when these are taken for real. Each network gets the
// gradient of its own part at the same point: a step updates both at the same
// time, not the discriminator first as in Goodfellow et al., "Generative
// Adversarial Nets" (NeurIPS 2014), algorithm 1.
torch::Tensor DcganLoss(DcganGenerator& generator,
                        DcganDiscriminator& discriminator,
                        const torch::Tensor& noise,
                        const torch::Tensor& images);

// The functions below make tasks; the options must suit the model.
// Classification of images and clips, and detection of objects:
SyntheticTask MakeResNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeAlexNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVgg16Task(const SyntheticTaskOptions& options);
SyntheticTask MakeConv3dTask(const SyntheticTaskOptions& options);
SyntheticTask MakeSsd300Task(const SyntheticTaskOptions& options);

// Sequences:
SyntheticTask MakeLstmTask(const SyntheticTaskOptions& options);
SyntheticTask MakeWavesTask(const SyntheticTaskOptions& options);
SyntheticTask MakeWordLanguageModelTask(const SyntheticTaskOptions& options);
SyntheticTask MakeTransformerTask(const SyntheticTaskOptions& options);
SyntheticTask MakeTranslatorTask(const SyntheticTaskOptions& options);
SyntheticTask MakeLanguageModelTask(const SyntheticTaskOptions& options);

// Vectors, and pairs of users and items:
SyntheticTask MakeMlpTask(const SyntheticTaskOptions& options);
SyntheticTask MakeFilteringTask(const SyntheticTaskOptions& options);
// Each call of loss() draws new points of a polynomial of degree 4.
SyntheticTask MakePolynomialTask(const SyntheticTaskOptions& options);

// Generated images:
SyntheticTask MakeDcganTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVaeTask(const SyntheticTaskOptions& options);
SyntheticTask MakeSuperResolutionTask(const SyntheticTaskOptions& options);
SyntheticTask MakeStyleTransferTask(const SyntheticTaskOptions& options);

// Single kernels:
SyntheticTask MakeConv3dVolumesTask(const SyntheticTaskOptions& options);
SyntheticTask MakeLstmLayerTask(const SyntheticTaskOptions& options);

// Policies with the games that they play. A batch of MakeCartPoleTask has
// batch_size steps of one game; a batch of MakeBallGameTask has batch_size
// games of sequence_length steps each.
SyntheticTask MakeCartPoleTask(const SyntheticTaskOptions& options);
SyntheticTask MakeBallGameTask(const SyntheticTaskOptions& options);

// A task without a model: each call of loss() loads a batch of augmented images
// and returns zero. Without data_dir, the images have CIFAR-10's size and come
// from memory. Otherwise they come from its directories (ListImageFolder), in a
// new order in each epoch. Each is decoded, cropped at random, resized to
// image_size, flipped at random and normalised.
SyntheticTask MakeImageLoadingTask(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
