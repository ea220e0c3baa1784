#include "trainers/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>
#include <stdexcept>

#include "trainers/models/resnet.h"

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A small model and its optimizer.
struct Training {
  explicit Training(uint64_t seed)
      : model((torch::manual_seed(seed),
               ResNet(ResNetOptions{.architecture = "resnet8",
                                    .classes = 10,
                                    .small_image_stem = true}))),
        optimizer(model->parameters(),
                  torch::optim::SGDOptions(0.1).momentum(0.9)) {}

  void Step() {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model(torch::ones({4, 3, 32, 32})),
                                         torch::arange(4))
        .backward();
    optimizer.step();
  }

  ResNet model;
  torch::optim::SGD optimizer;
};

bool Equal(const std::vector<torch::Tensor>& a,
           const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.equal(y); });
}

// What WriteState writes, as ReadState finds it.
torch::serialize::InputArchive Saved(const std::string& model_name,
                                     const Training& training,
                                     const Progress& progress) {
  std::stringstream bytes;
  torch::serialize::OutputArchive written;
  WriteState(written, model_name, *training.model, training.optimizer,
             progress);
  written.save_to(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(bytes);
  return archive;
}

TEST(CheckpointTest, TrainingGoesOnFromItAsIfNotInterrupted) {
  Training original(1);
  original.Step();
  original.Step();
  auto archive =
      Saved("net", original, {.epoch = 3, .step = 4, .steps_per_epoch = 5});
  original.Step();

  Training resumed(2);
  const torch::Tensor held = resumed.model->parameters().front();
  const Progress progress =
      ReadState(archive, "net", *resumed.model, resumed.optimizer);
  EXPECT_EQ(progress.epoch, 3);
  EXPECT_EQ(progress.step, 4);
  EXPECT_EQ(progress.steps_per_epoch, 5);
  EXPECT_FALSE(
      Equal(resumed.model->parameters(), original.model->parameters()));
  resumed.Step();  // wrong without the momentum
  EXPECT_TRUE(Equal(resumed.model->parameters(), original.model->parameters()));
  EXPECT_TRUE(Equal(resumed.model->buffers(), original.model->buffers()));
  EXPECT_TRUE(held.equal(original.model->parameters().front()));
}

TEST(CheckpointTest, OtherModelIsAnErrorThatNamesBoth) {
  Training training(1);
  auto archive = Saved("net", training, {});
  EXPECT_THAT(
      [&] {
        ReadState(archive, "resnet50", *training.model, training.optimizer);
      },
      ThrowsMessage<std::runtime_error>(testing::AllOf(
          HasSubstr("holds net"), HasSubstr("training is of resnet50"))));
}

}  // namespace
}  // namespace hvdlite::trainers
