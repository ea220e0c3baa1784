// What train_synthetic computes: a model and one random batch for it; and the
// makers of these tasks, for the registry of synthetic models.
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
  // Null where nothing is trained.
  std::shared_ptr<torch::nn::Module> model;
  // Computes the mean loss of the batch, a scalar, anew.
  std::function<torch::Tensor()> loss;
  // A batch is so many times loss() and a step of the optimizer.
  int64_t updates = 1;
};

// Sizes of 0 are those of the model's publication.
struct SyntheticTaskOptions {
  std::string model = "resnet50";
  int64_t batch_size = 32;  // per rank
  int64_t image_size = 0;   // pixels a side
  int64_t classes = 0;      // or words of a vocabulary
  int64_t sequence_length = 0;
  int64_t width = 0;                 // channels of the narrowest convolution
  int64_t hidden = 0;                // width of the hidden layers
  std::string data_format = "NCHW";  // or "NHWC"
  std::string data_dir = {};         // of images; empty: made ones
  int workers = 0;                   // threads that load them; 0: the caller
  uint64_t seed = 0;                 // of the batch
};

// The generator of a task's batch.
at::Generator GeneratorOf(const SyntheticTaskOptions& options);

// `size`, or where that is 0, `published`.
int64_t SizeOr(int64_t size, int64_t published);

at::MemoryFormat MemoryFormatOf(const SyntheticTaskOptions& options);

// Training by cross entropy.
// `model` makes logits [..., classes] of `inputs`; `labels` [...] are int64.
template <typename Model>
SyntheticTask Classification(Model model, torch::Tensor inputs,
                             torch::Tensor labels) {
  return {.model = model.ptr(), .loss = [model, inputs, labels]() mutable {
            return torch::nn::functional::cross_entropy(
                model(inputs).flatten(0, -2).to(torch::kFloat32),
                labels.flatten());
          }};
}

// The discriminator's binary cross entropy for `images` [N, C, 64, 64] and for
// what the generator makes of `noise` [N, latent], plus the generator's for
// being taken for real. Each network gets the gradient of its own part, at the
// same point: a step updates both at once, not the discriminator first as in
// Goodfellow et al., "Generative Adversarial Nets" (NeurIPS 2014), algorithm 1.
torch::Tensor DcganLoss(DcganGenerator& generator,
                        DcganDiscriminator& discriminator,
                        const torch::Tensor& noise,
                        const torch::Tensor& images);

// Makers of tasks, each with options that suit its model. Images and clips to
// classes, and to boxes around objects:
SyntheticTask MakeResNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeAlexNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVgg16Task(const SyntheticTaskOptions& options);
SyntheticTask MakeConv3dTask(const SyntheticTaskOptions& options);
SyntheticTask MakeSsd300Task(const SyntheticTaskOptions& options);

// Sequences.
SyntheticTask MakeLstmTask(const SyntheticTaskOptions& options);
SyntheticTask MakeWavesTask(const SyntheticTaskOptions& options);
SyntheticTask MakeWordLanguageModelTask(const SyntheticTaskOptions& options);
SyntheticTask MakeTransformerTask(const SyntheticTaskOptions& options);
SyntheticTask MakeTranslatorTask(const SyntheticTaskOptions& options);
SyntheticTask MakeLanguageModelTask(const SyntheticTaskOptions& options);

// Vectors, and pairs of users and items.
SyntheticTask MakeMlpTask(const SyntheticTaskOptions& options);
SyntheticTask MakeFilteringTask(const SyntheticTaskOptions& options);
// Each call of loss() draws new points of a polynomial of degree 4.
SyntheticTask MakePolynomialTask(const SyntheticTaskOptions& options);

// Models that make images.
SyntheticTask MakeDcganTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVaeTask(const SyntheticTaskOptions& options);
SyntheticTask MakeSuperResolutionTask(const SyntheticTaskOptions& options);
SyntheticTask MakeStyleTransferTask(const SyntheticTaskOptions& options);

// Single kernels.
SyntheticTask MakeConv3dVolumesTask(const SyntheticTaskOptions& options);
SyntheticTask MakeLstmLayerTask(const SyntheticTaskOptions& options);

// Policies, with the games that they play. A batch of the first has batch_size
// steps of one game; one of the second, batch_size games of sequence_length
// steps each.
SyntheticTask MakeCartPoleTask(const SyntheticTaskOptions& options);
SyntheticTask MakeBallGameTask(const SyntheticTaskOptions& options);

// No model: each call of loss() loads a batch of augmented images and returns
// zero. Without data_dir, images of CIFAR-10's size from memory; else those of
// its folders (ListImageFolder) in a new order in each epoch, each decoded,
// cropped at random, resized to image_size, flipped at random and normalised.
SyntheticTask MakeImageLoadingTask(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
