#include "trainers/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <fstream>

#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"
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

TEST(CheckpointTest, TrainingGoesOnFromItAsIfNotInterrupted) {
  const TemporaryDirectory directory;
  const std::string file = directory / "checkpoint.pt";
  Training original(1);
  original.Step();
  original.Step();
  WriteCheckpoint(file, "net", *original.model, original.optimizer,
                  {.epoch = 3, .step = 4, .steps_per_epoch = 5});
  original.Step();

  Training resumed(2);
  const torch::Tensor held = resumed.model->parameters().front();
  const Progress progress =
      ReadCheckpoint(file, "net", *resumed.model, resumed.optimizer);
  EXPECT_EQ(progress.epoch, 3);
  EXPECT_EQ(progress.step, 4);
  EXPECT_EQ(progress.steps_per_epoch, 5);
  EXPECT_FALSE(
      Equal(resumed.model->parameters(), original.model->parameters()));
  resumed.Step();  // wrong without the momentum
  EXPECT_TRUE(Equal(resumed.model->parameters(), original.model->parameters()));
  EXPECT_TRUE(Equal(resumed.model->buffers(), original.model->buffers()));
  EXPECT_TRUE(held.equal(original.model->parameters().front()));
  EXPECT_FALSE(std::filesystem::exists(file + ".tmp"));
}

TEST(CheckpointTest, ProcessKilledWhileItWritesLosesNothing) {
  const TemporaryDirectory directory;
  const std::string file = directory / "checkpoint.pt";
  Training training(1);
  WriteCheckpoint(file, "net", *training.model, training.optimizer,
                  {.epoch = 3, .step = 0, .steps_per_epoch = 5});
  const pid_t writer = fork();
  if (writer == 0) {
    // The kernel kills it (SIGXFSZ) in the middle of the file.
    const rlimit no_core = {0, 0};
    const rlimit part_of_it = {100'000, 100'000};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &part_of_it);
    WriteCheckpoint(file, "net", *training.model, training.optimizer,
                    {.epoch = 4, .step = 0, .steps_per_epoch = 5});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(
      ReadCheckpoint(file, "net", *training.model, training.optimizer).epoch,
      3);
}

TEST(CheckpointTest, MissingFileIsAnErrorThatNamesIt) {
  Training training(1);
  EXPECT_THAT(
      [&] {
        ReadCheckpoint("/nonexistent/c.pt", "net", *training.model,
                       training.optimizer);
      },
      ThrowsMessage<support::InputError>(HasSubstr("/nonexistent/c.pt")));
}

TEST(CheckpointTest, FileOfAnotherKindIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  const std::string file = directory / "notes.txt";
  std::ofstream(file) << "not a checkpoint";
  Training training(1);
  EXPECT_THAT(
      [&] { ReadCheckpoint(file, "net", *training.model, training.optimizer); },
      ThrowsMessage<support::InputError>(HasSubstr("notes.txt")));
}

TEST(CheckpointTest, OtherModelIsAnErrorThatNamesBoth) {
  const TemporaryDirectory directory;
  const std::string file = directory / "checkpoint.pt";
  Training training(1);
  WriteCheckpoint(file, "net", *training.model, training.optimizer, {});
  EXPECT_THAT(
      [&] {
        ReadCheckpoint(file, "resnet50", *training.model, training.optimizer);
      },
      ThrowsMessage<support::InputError>(testing::AllOf(
          HasSubstr("holds net"), HasSubstr("training is of resnet50"))));
}

TEST(CheckpointTest, UnwritableFileIsAnErrorThatNamesIt) {
  Training training(1);
  EXPECT_THAT(
      [&] {
        WriteCheckpoint("/nonexistent/c.pt", "net", *training.model,
                        training.optimizer, {});
      },
      ThrowsMessage<std::runtime_error>(HasSubstr("/nonexistent/c.pt")));
}

}  // namespace
}  // namespace hvdlite::trainers
