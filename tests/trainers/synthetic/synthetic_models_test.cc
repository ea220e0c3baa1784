#include "trainers/synthetic/synthetic_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/synthetic/small_tasks.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/models/generative_networks.h"
#include "trainers/step.h"
#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {
namespace {

// The loss of a new model, in evaluation mode, with weights of one seed.
double LossOf(const SyntheticTaskOptions& options) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  const SyntheticTask task = MakeSyntheticTask(options);
  task.model->eval();
  return task.loss().item<double>();
}

TEST(SyntheticModelsTest, BatchDependsOnlyOnTheSeed) {
  const SyntheticTaskOptions options = {.model = "mlp", .batch_size = 4};
  SyntheticTaskOptions other_seed = options;
  other_seed.seed = 1;
  EXPECT_EQ(LossOf(options), LossOf(options));
  EXPECT_NE(LossOf(options), LossOf(other_seed));

  const SyntheticTask task = MakeSyntheticTask(options);
  EXPECT_EQ(task.loss().item<double>(), task.loss().item<double>());
}

TEST(SyntheticModelsTest, DataFormatChangesOnlyTheLayout) {
  const SyntheticTaskOptions nchw = {
      .model = "resnet18", .batch_size = 2, .image_size = 32, .classes = 10};
  SyntheticTaskOptions nhwc = nchw;
  nhwc.data_format = "NHWC";
  EXPECT_NEAR(LossOf(nchw), LossOf(nhwc), 1e-3);
  const SyntheticTask task = MakeSyntheticTask(nhwc);
  EXPECT_TRUE(
      task.model->named_parameters()["layer1.0.conv1.weight"].is_contiguous(
          at::MemoryFormat::ChannelsLast));
}

class SmallTaskTest : public ::testing::TestWithParam<SmallTask> {};

// The sizes are the defaults.
TEST_P(SmallTaskTest, HasThePublishedNumberOfParameters) {
  if (GetParam().parameters == 0) return;
  int64_t count = 0;
  for (const torch::Tensor& parameter :
       MakeSyntheticTask({.model = GetParam().options.model, .batch_size = 1})
           .model->parameters()) {
    count += parameter.numel();
  }
  EXPECT_EQ(count, GetParam().parameters);
}

TEST_P(SmallTaskTest, GivesEveryParameterAFiniteGradientAndLearns) {
  torch::manual_seed(1);
  const SyntheticTask task = MakeSyntheticTask(GetParam().options);
  torch::Tensor loss = task.loss();
  EXPECT_EQ(loss.dim(), 0);
  std::vector<double> losses = {loss.item<double>()};
  EXPECT_TRUE(std::isfinite(losses[0]));
  loss.backward();
  for (const auto& parameter : task.model->named_parameters()) {
    const torch::Tensor& gradient = parameter.value().grad();
    ASSERT_EQ(gradient.defined(),
              !parameter.key().starts_with(GetParam().without_gradient))
        << parameter.key();
    if (!gradient.defined()) continue;
    EXPECT_TRUE(gradient.to_dense().isfinite().all().item<bool>())
        << parameter.key();
  }
  if (!GetParam().learns_fast) return;
  torch::optim::Adam adam(task.model->parameters(),
                          torch::optim::AdamOptions(0.003));
  // A step of SSD300 takes a second.
  const size_t steps = GetParam().options.model == "ssd300" ? 4 : 12;
  while (losses.size() < steps) {
    adam.step();
    adam.zero_grad();
    loss = task.loss();
    loss.backward();
    losses.push_back(loss.item<double>());
  }
  EXPECT_LT(losses[steps - 3] + losses[steps - 2] + losses[steps - 1],
            losses[0] + losses[1] + losses[2]);
}

INSTANTIATE_TEST_SUITE_P(All, SmallTaskTest, ::testing::ValuesIn(SmallTasks()),
                         [](const auto& info) {
                           return info.param.options.model;
                         });

TEST(SmallTasksTest, CoverAllModelsExceptDeepResNetsAndImageLoading) {
  std::vector<std::string> names = {"resnet34", "resnet101", "resnet152",
                                    "image_loading"};
  for (const SmallTask& task : SmallTasks()) {
    names.push_back(task.options.model);
  }
  EXPECT_THAT(SyntheticModelNames(),
              ::testing::UnorderedElementsAreArray(names));
}

TEST(SyntheticModelsTest, BatchOfGamesHasSeveralUpdates) {
  EXPECT_EQ(MakeSyntheticTask({.model = "cart_pole", .batch_size = 50}).updates,
            1);
  EXPECT_EQ(MakeSyntheticTask(
                {.model = "ball_game", .batch_size = 1, .sequence_length = 8})
                .updates,
            16);
}

// These models are in 16-bit benchmarks.
TEST(SyntheticModelsTest, LossesInBfloat16DifferFromFloat) {
  for (const std::string model :
       {"resnet18", "word_language_model_gru", "translator"}) {
    const std::vector<SmallTask> tasks = SmallTasks();
    const auto task = std::ranges::find_if(
        tasks, [&](const SmallTask& t) { return t.options.model == model; });
    const double exact = LossOf(task->options);
    const Bfloat16Autocast autocast(true);
    const double rounded = LossOf(task->options);
    EXPECT_NE(rounded, exact) << model;
    EXPECT_NEAR(rounded, exact, 0.3) << model;
  }
}

TEST(SyntheticModelsTest, TooFewStepsOfGamesAreAnError) {
  EXPECT_THAT(
      [] {
        MakeSyntheticTask(
            {.model = "ball_game", .batch_size = 1, .sequence_length = 3});
      },
      ::testing::ThrowsMessage<support::InputError>(
          ::testing::HasSubstr("1 games of 3 steps")));
}

// Returns the gradients of `loss` for the parameters of `model`.
std::vector<torch::Tensor> Gradients(const torch::Tensor& loss,
                                     const torch::nn::Module& model) {
  return torch::autograd::grad({loss}, model.parameters());
}

void ExpectGradients(const torch::nn::Module& model,
                     const std::vector<torch::Tensor>& expected) {
  const std::vector<torch::Tensor> parameters = model.parameters();
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(parameters[i].requires_grad()) << i;
    EXPECT_TRUE(torch::allclose(parameters[i].grad(), expected[i], 1e-4, 1e-6))
        << i;
  }
}

TEST(SyntheticModelsTest, DcganNetworksGetGradientsOfTheirOwnLosses) {
  torch::manual_seed(1);
  const DcganOptions sizes = {.width = 2};
  DcganGenerator generator(sizes);
  DcganDiscriminator discriminator(sizes);
  const torch::Tensor noise = torch::randn({4, sizes.latent});
  const torch::Tensor images = torch::randn({4, 3, 64, 64});
  // These are -log D(x), -log(1 - D(G(z))) and -log D(G(z)) of the paper.
  const torch::Tensor made = generator(noise);
  const auto of_discriminator =
      Gradients(torch::softplus(-discriminator(images)).mean() +
                    torch::softplus(discriminator(made.detach())).mean(),
                *discriminator);
  const auto of_generator =
      Gradients(torch::softplus(-discriminator(made)).mean(), *generator);

  DcganLoss(generator, discriminator, noise, images).backward();
  ExpectGradients(*discriminator, of_discriminator);
  ExpectGradients(*generator, of_generator);
}

TEST(SyntheticModelsTest, ImageLoadingHasNoModel) {
  const SyntheticTask task =
      MakeSyntheticTask({.model = "image_loading", .batch_size = 4});
  EXPECT_EQ(task.model, nullptr);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(task.loss().item<double>(), 0);
}

// Makes images, 28 of them in the training domains.
void WritePictures(const TemporaryDirectory& directory) {
  for (const char* domain : {"a", "b", "c"}) {
    for (int label = 0; label < 7; ++label) {
      const auto class_directory =
          directory / domain / ("class" + std::to_string(label));
      std::filesystem::create_directories(class_directory);
      for (int i = 0; i < 2; ++i) {
        WriteImageFile(class_directory / (std::to_string(i) + ".jpg"),
                       MakePatternPicture(0, label, /*side=*/20, 1, i),
                       ImageFormat::kJpeg);
      }
    }
  }
}

SyntheticTaskOptions LoadingFrom(const TemporaryDirectory& directory) {
  return {.model = "image_loading",
          .batch_size = 10,
          .image_size = 16,
          .data_dir = directory.path(),
          .workers = 2};
}

TEST(SyntheticModelsTest, ImageLoadingReadsFilesAgainInEachEpoch) {
  const TemporaryDirectory directory;
  WritePictures(directory);
  const SyntheticTask task = MakeSyntheticTask(LoadingFrom(directory));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(task.loss().item<double>(), 0);
  // The images of later epochs are not read yet.
  std::filesystem::remove_all(directory / "a");
  EXPECT_THROW(
      {
        for (int i = 0; i < 5; ++i) task.loss();
      },
      std::runtime_error);
}

TEST(SyntheticModelsTest, BatchLargerThanTheDataSetIsAnError) {
  const TemporaryDirectory directory;
  WritePictures(directory);
  SyntheticTaskOptions options = LoadingFrom(directory);
  options.batch_size = 29;
  EXPECT_THAT(
      [&] { MakeSyntheticTask(options); },
      ::testing::ThrowsMessage<support::InputError>(
          ::testing::HasSubstr("has 28 training images, less than a batch of "
                               "29")));
}

TEST(SyntheticModelsTest, UnsuitableSizeIsAnError) {
  EXPECT_THROW(MakeSyntheticTask({.model = "vae", .image_size = 32}),
               support::InputError);
}

TEST(SyntheticModelsTest, UnknownModelIsAnError) {
  EXPECT_THROW(MakeSyntheticTask({.model = "resnet51"}), std::invalid_argument);
}

}  // namespace
}  // namespace hvdlite::trainers
