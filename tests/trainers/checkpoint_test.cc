#include "trainers/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>
#include <stdexcept>

#include "trainers/models/resnet.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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

// A checkpoint in the format of the first release.
torch::serialize::InputArchive Saved(const std::string& model_name,
                                     const Training& training, int64_t epoch,
                                     int64_t step, int64_t steps_per_epoch) {
  std::stringstream bytes;
  torch::serialize::OutputArchive archive;
  archive.write("model_name", c10::IValue(model_name));
  archive.write("epoch", c10::IValue(epoch));
  archive.write("step", c10::IValue(step));
  archive.write("steps_per_epoch", c10::IValue(steps_per_epoch));
  torch::serialize::OutputArchive model(archive.compilation_unit());
  training.model->save(model);
  archive.write("model", model);
  torch::serialize::OutputArchive optimizer(archive.compilation_unit());
  training.optimizer.save(optimizer);
  archive.write("optimizer", optimizer);
  archive.save_to(bytes);
  torch::serialize::InputArchive read;
  read.load_from(bytes);
  return read;
}

TEST(CheckpointTest, TrainingContinuesFromFormatOfFirstRelease) {
  Training original(1);
  original.Step();
  original.Step();
  auto archive = Saved("net", original, 3, 4, 5);
  original.Step();

  Training resumed(2);
  DistributedSampler sampler(33, 3, 1);  // 5 steps of 6, and 3 more samples
  const torch::Tensor held = resumed.model->parameters().front();
  EXPECT_EQ(ReadFirstRelease(archive, "net", /*samples_per_step=*/6,
                             *resumed.model, resumed.optimizer, sampler),
            19);
  EXPECT_EQ(sampler.epoch(), 3);
  EXPECT_EQ(sampler.position(), 24);
  EXPECT_FALSE(
      Equal(resumed.model->parameters(), original.model->parameters()));
  resumed.Step();  // would be wrong without the momentum
  EXPECT_TRUE(Equal(resumed.model->parameters(), original.model->parameters()));
  EXPECT_TRUE(Equal(resumed.model->buffers(), original.model->buffers()));
  EXPECT_TRUE(held.equal(original.model->parameters().front()));
}

TEST(CheckpointTest, OtherModelOrStepsPerEpochAreErrors) {
  Training training(1);
  DistributedSampler sampler(33, 3, 1);
  const auto read = [&](const std::string& model_name, int64_t step) {
    auto archive = Saved("net", training, 1, step, 5);
    ReadFirstRelease(archive, model_name, /*samples_per_step=*/9,
                     *training.model, training.optimizer, sampler);
  };
  EXPECT_THAT([&] { read("resnet50", 0); },
              ThrowsMessage<std::runtime_error>(::testing::AllOf(
                  HasSubstr("holds net"), HasSubstr("training has resnet50"))));
  EXPECT_THAT([&] { read("net", 2); },
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("step 2 of an epoch of 5 steps")));
  read("net", 0);  // at the end of an epoch, any number of steps is accepted
  EXPECT_EQ(sampler.epoch(), 1);
  EXPECT_EQ(sampler.position(), 0);
}

}  // namespace
}  // namespace hvdlite::trainers
