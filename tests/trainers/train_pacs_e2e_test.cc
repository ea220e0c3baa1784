// Trains on directories of images as a user does, on two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/trainer_contract.h"
#include "trainers/data/formats/image_file.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Generate(const TemporaryDirectory& directory, int images) {
  const Finished generated = RunCommand(
      kPrograms + "generate_pacs --size 40 --images-per-class " +
      std::to_string(images) + " --output " + directory.path().string());
  EXPECT_EQ(generated.exit_code, 0) << generated.output;
  return directory.path().string();
}

// A small training with additional flags.
std::string Command(const std::string& flags) {
  return kPrograms +
         "train_resnet50 --arch resnet8 --image-size 32 --batch-size 14 "
         "--lr 0.02 --warmup-epochs 1 --augmentation domain-generalisation " +
         flags;
}

// The generated files, made once.
class TrainPacsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    Generate(*data_, /*images=*/24);
  }
  static void TearDownTestSuite() { delete data_; }

  static std::string OnData(const std::string& flags) {
    return Command("--data-dir " + data_->path().string() + " " + flags);
  }

  static TemporaryDirectory* data_;
};

TemporaryDirectory* TrainPacsTest::data_ = nullptr;

TEST_F(TrainPacsTest, LearnsClassesThatGeneraliseToAnotherDomain) {
  const nlohmann::json report =
      Train({OnRanks(2, OnData("--epochs 6 --workers 1"))}).front();
  EXPECT_EQ(
      CountOccurrences(
          report["output"],
          "data: directories of images, training on art_painting, cartoon, "
          "photo, testing on sketch; 504 training and 168 test images "
          "of 7 classes\n"),
      1)
      << report["output"];
  EXPECT_EQ(report["settings"]["classes"], 7);
  EXPECT_EQ(report["evaluation"]["images"], 168);
  EXPECT_GT(report["evaluation"]["accuracy"], 0.4);  // chance: 1 in 7
  EXPECT_EQ(report["parameters_identical"], true);
  EXPECT_THAT(report["data"]["training images"].get<std::string>(),
              HasSubstr("domain generalisation's recipe: random crop of 0.8 "));
}

TEST_F(TrainPacsTest, DomainsAndRecipeFollowTheFlags) {
  const nlohmann::json report =
      Train({Alone(OnData("--max-steps 1 --train-domains photo,sketch "
                          "--val-domains cartoon --augmentation auto"))})
          .front();
  const std::string output = report["output"];
  EXPECT_THAT(output, HasSubstr("training on photo, sketch, testing on "
                                "cartoon; 336 training and 168 test"));
  for (const auto& [kind, recipe] :
       {std::pair("training images",
                  "ImageNet's recipe: random crop of 0.08 to 1 of the area"),
        std::pair("test images",
                  "ImageNet's recipe: shorter side resized to 37, 32x32 in "
                  "the middle, ")}) {
    EXPECT_THAT(report["data"][kind].get<std::string>(), HasSubstr(recipe));
    EXPECT_THAT(output, HasSubstr(std::string(kind) + ": " + recipe));
  }
}

TEST_F(TrainPacsTest, ReplicasStayEqualForAllWaysToCompute) {
  std::vector<std::string> commands;
  for (const std::string way :
       {"--bf16 --memory-format nhwc", "--memory-format onednn",
        "--no-onednn --inter-op-threads 2"}) {
    commands.push_back(
        OnRanks(2, OnData(way + " --epochs 2 --train-domains cartoon")));
  }
  for (const nlohmann::json& report : Train(commands)) {
    EXPECT_EQ(report["parameters_identical"], true) << report["settings"];
    EXPECT_LT(report["loss"]["last"], report["loss"]["first"])
        << report["settings"];
  }
}

TEST_F(TrainPacsTest, UnknownDomainIsAnError) {
  const Finished training = RunCommand(Alone(OnData("--val-domains clipart")));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "no domain 'clipart'"), 1)
      << training.output;
}

// Uses separate pictures, 42 for training and 14 for testing, so that tests may
// damage some.
class UnreadableImagesTest : public ::testing::Test {
 protected:
  UnreadableImagesTest() : data_dir_(Generate(own_data_, /*images=*/2)) {}

  // Makes reading the image an I/O error, which could be temporary.
  static void MakeFail(const std::string& image) {
    std::filesystem::remove(image);
    std::filesystem::create_symlink("/proc/self/mem", image);
  }
  void Truncate(const std::string& image) const {
    WriteFileBytes(image, FileBytes(image).substr(0, 600));
  }
  std::string OnOwnData(const std::string& flags) const {
    return Command("--epochs 1 --batch-size 3 --data-dir " + data_dir_ + " " +
                   flags);
  }

  const TemporaryDirectory own_data_;
  const TemporaryDirectory scratch_;
  const std::string data_dir_;
  const std::string for_training_ = data_dir_ + "/photo/horse/pic_002.jpg";
  const std::string for_testing_ = data_dir_ + "/sketch/horse/pic_002.jpg";
};

TEST_F(UnreadableImagesTest, EndAllRanksWithOneError) {
  Truncate(for_training_);
  for (const Finished& training :
       RunCommands({OnRanks(2, OnOwnData("--workers 2")),
                    OnRanks(2, OnOwnData("--barrier-only"))})) {
    EXPECT_EQ(training.exit_code, 2) << training.output;
    EXPECT_EQ(CountOccurrences(training.output, for_training_), 1)
        << training.output;
    EXPECT_THAT(training.output,
                AllOf(HasSubstr("cannot read the training data on rank "),
                      HasSubstr("; use --check-data to list all unreadable "
                                "images, or --skip-unreadable to skip them")));
  }
}

TEST_F(UnreadableImagesTest, TemporaryErrorIsNotWrongInput) {
  const auto expect_error = [](const Finished& run, const std::string& image) {
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_EQ(CountOccurrences(run.output, image), 1) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr(": Input/output error"),
                                  Not(HasSubstr("; use --check-data"))));
  };
  MakeFail(for_testing_);
  expect_error(RunCommand(Alone(OnOwnData("--skip-unreadable --max-steps 1"))),
               for_testing_);
  MakeFail(for_training_);
  for (const Finished& run :
       RunCommands({OnRanks(2, OnOwnData("--skip-unreadable --workers 2")),
                    OnRanks(2, OnOwnData("--no-sync")),
                    Alone(OnOwnData("--check-data"))})) {
    expect_error(run, for_training_);
  }
}

TEST_F(UnreadableImagesTest, NoCheckpointAfterAnUnreadableImage) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(data_dir_)) {
    if (entry.is_regular_file()) WriteFileBytes(entry.path(), "");
  }
  const std::string saves = "--checkpoint-every-steps 1 --checkpoint " +
                            (scratch_ / "checkpoint.pt").string();
  const std::vector<Finished> trainings = RunCommands(
      {Alone(OnOwnData(saves)), OnRanks(2, OnOwnData(saves + ".1 --no-sync")),
       Alone(OnOwnData("--skip-unreadable"))});
  for (const Finished& training : trainings) {
    EXPECT_EQ(training.exit_code, 2) << training.output;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
  EXPECT_THAT(trainings.back().output,
              AllOf(HasSubstr("none of 100 images that could replace another"),
                    HasSubstr("; use --check-data to list all"),
                    Not(HasSubstr("--skip-unreadable"))));
}

TEST_F(UnreadableImagesTest, EvaluationEndsAllRanks) {
  Truncate(for_testing_);
  const Finished training = RunCommand(OnRanks(2, OnOwnData("--max-steps 1")));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, for_testing_), 1)
      << training.output;
  EXPECT_THAT(training.output, HasSubstr("cannot read the test data on rank "));
}

// For any number of workers.
TEST_F(UnreadableImagesTest, SkippedImagesAreCounted) {
  Truncate(for_training_);
  WriteFileBytes(for_testing_, "");
  const std::vector<nlohmann::json> reports = Train(
      {OnRanks(2, OnOwnData("--epochs 2 --skip-unreadable --workers 0")),
       OnRanks(2, OnOwnData("--epochs 2 --skip-unreadable --workers 3"))});
  for (const nlohmann::json& report : reports) {
    EXPECT_EQ(report["steps"], 14);
    EXPECT_EQ(report["unreadable"]["replaced"], 2);  // in each epoch
    EXPECT_EQ(report["unreadable"]["left_out"], 1);
    EXPECT_EQ(report["evaluation"]["images"], 13);
    EXPECT_EQ(report["parameters_identical"], true);
    const std::string output = report["output"];
    EXPECT_THAT(output,
                HasSubstr("image replaced by another one: cannot decode the "
                          "JPEG '" +
                          for_training_));
    EXPECT_THAT(output,
                HasSubstr("image skipped in the evaluation: '" + for_testing_));
    // It is printed once although both epochs read it.
    EXPECT_EQ(CountOccurrences(output, for_testing_), 1) << output;
    EXPECT_EQ(report["parameter_digests"], reports[0]["parameter_digests"]);
    EXPECT_EQ(report["evaluation"], reports[0]["evaluation"]);
  }
}

TEST_F(UnreadableImagesTest, AreFoundByCheckingTheData) {
  const std::string png = data_dir_ + "/photo/dog/a.JPEG";
  const std::string link = data_dir_ + "/photo/dog/link.jpg";
  WriteImageFile(png, {.width = 1, .height = 1, .pixels = {1, 2, 3}},
                 ImageFormat::kPng);
  const Finished sound = RunCommand(Alone(OnOwnData("--check-data")));
  EXPECT_EQ(sound.exit_code, 0) << sound.output;
  EXPECT_EQ(CountOccurrences(sound.output, "all 57 images can be read"), 1)
      << sound.output;
  EXPECT_EQ(CountOccurrences(sound.output, "step"), 0) << sound.output;

  Truncate(for_training_);
  WriteFileBytes(for_testing_, "");
  std::filesystem::create_symlink("/nonexistent", link);
  const Finished damaged =
      RunCommand(OnRanks(2, OnOwnData("--check-data --workers 2")));
  EXPECT_EQ(damaged.exit_code, 2) << damaged.output;
  for (const std::string& image : {for_training_, for_testing_, link}) {
    EXPECT_EQ(CountOccurrences(damaged.output, image), 1) << damaged.output;
  }
  EXPECT_EQ(CountOccurrences(damaged.output,
                             "3 of 58 images in '" + data_dir_ +
                                 "' cannot be read; replace or remove them"),
            1)
      << damaged.output;
}

}  // namespace
}  // namespace hvdlite::trainers
