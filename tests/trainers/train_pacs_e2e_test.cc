// Trains on folders of images as a user does, on two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"
#include "tests/trainers/trainings.h"
#include "trainers/data/formats/image_file.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrain = HVDLITE_TEST_BIN_DIR "/train_resnet50";
const std::string kGenerate = HVDLITE_TEST_BIN_DIR "/generate_pacs";

std::string Generate(const TemporaryDirectory& directory, int images) {
  const Finished generated = RunCommand(
      kGenerate + " --size 40 --images-per-class " + std::to_string(images) +
      " --output " + directory.path().string());
  EXPECT_EQ(generated.exit_code, 0) << generated.output;
  return directory.path().string();
}

// Generated files, made once.
class TrainPacsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    Generate(*data_, /*images=*/24);
  }
  static void TearDownTestSuite() { delete data_; }

  static std::string Command(const std::string& flags) {
    return kMpirun + " 2 " + kTrain +
           " --arch resnet8 --image-size 32 --batch-size 14 "
           "--lr 0.02 --warmup-epochs 1 "
           "--augmentation domain-generalisation " +
           flags;
  }

  // Trains on the generated files.
  static std::vector<nlohmann::json> Train(
      const std::vector<std::string>& flags_of_trainings) {
    Trainings trainings([](const Training& training) {
      return Command("--data-dir " + data_->path().string() + " " +
                     training.second);
    });
    std::vector<Training> on_two_ranks;
    for (const std::string& flags : flags_of_trainings) {
      on_two_ranks.emplace_back(2, flags);
    }
    return trainings.Train(on_two_ranks);
  }

  static TemporaryDirectory* data_;
  const TemporaryDirectory scratch_;
};

TemporaryDirectory* TrainPacsTest::data_ = nullptr;

TEST_F(TrainPacsTest, LearnsClassesThatHoldInTheDomainLeftOut) {
  const nlohmann::json report = Train({"--epochs 6 --workers 1"}).front();
  EXPECT_EQ(CountOccurrences(
                report["output"],
                "data: folders of images, training on art_painting, cartoon, "
                "photo, testing on sketch; 504 training and 168 test images "
                "of 7 classes\n"),
            1)
      << report["output"];
  EXPECT_EQ(report["settings"]["classes"], 7);
  EXPECT_EQ(report["evaluation"]["images"], 168);
  EXPECT_GT(report["evaluation"]["accuracy"], 0.4);  // chance: 1 in 7
  EXPECT_EQ(report["parameters_identical"], true);
}

TEST_F(TrainPacsTest, ReportNamesTheRecipes) {
  const std::vector<nlohmann::json> reports =
      Train({"--max-steps 1", "--max-steps 1 --augmentation auto"});
  EXPECT_THAT(reports[0]["data"]["training images"].get<std::string>(),
              HasSubstr("domain generalisation's recipe: random crop of 0.8 "));
  const nlohmann::json& usual = reports[1];
  for (const auto& [kind, recipe] :
       {std::pair("training images",
                  "ImageNet's recipe: random crop of 0.08 to 1 of the area"),
        std::pair("test images",
                  "ImageNet's recipe: shorter side resized to 37, 32x32 in "
                  "the middle, ")}) {
    EXPECT_THAT(usual["data"][kind].get<std::string>(), HasSubstr(recipe));
    EXPECT_THAT(usual["output"].get<std::string>(),
                HasSubstr(std::string(kind) + ": " + recipe));
  }
}

TEST_F(TrainPacsTest, NumberOfWorkersChangesNothing) {
  const std::vector<nlohmann::json> reports =
      Train({"--max-steps 4 --workers 0", "--max-steps 4 --workers 3"});
  EXPECT_EQ(reports[0]["parameter_digests"], reports[1]["parameter_digests"]);
  EXPECT_EQ(reports[0]["evaluation"], reports[1]["evaluation"]);
}

TEST_F(TrainPacsTest, WaysToComputeTrainReplicasThatStayEqual) {
  std::vector<std::string> flags = {"--bf16", "--bf16 --memory-format nhwc",
                                    "--memory-format onednn",
                                    "--no-onednn --inter-op-threads 2"};
  for (std::string& way : flags) way += " --epochs 2 --train-domains cartoon";
  const std::vector<nlohmann::json> reports = Train(flags);
  for (size_t i = 0; i < flags.size(); ++i) {
    EXPECT_EQ(reports[i]["parameters_identical"], true) << flags[i];
    EXPECT_LT(reports[i]["loss"]["last"], reports[i]["loss"]["first"])
        << flags[i];
  }
}

TEST_F(TrainPacsTest, DomainsAreThoseAskedFor) {
  const nlohmann::json report =
      Train({"--max-steps 1 --train-domains photo,sketch "
             "--val-domains cartoon"})
          .front();
  EXPECT_THAT(report["output"].get<std::string>(),
              HasSubstr("training on photo, sketch, testing on "
                        "cartoon; 336 training and 168 test"));
}

TEST_F(TrainPacsTest, UnknownDomainIsAnErrorPrintedOnce) {
  const Finished training = RunCommand(Command(
      "--data-dir " + data_->path().string() + " --val-domains clipart"));
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "no domain 'clipart'"), 1)
      << training.output;
}

// Pictures of its own, 42 to train on and 14 to test on, of which a test may
// damage some.
class UnreadableImagesTest : public TrainPacsTest {
 protected:
  UnreadableImagesTest() : data_dir_(Generate(own_data_, /*images=*/2)) {}

  // Reading it is an I/O error from now on, which may have passed at the next
  // try.
  static void MakeFail(const std::string& image) {
    std::filesystem::remove(image);
    std::filesystem::create_symlink("/proc/self/mem", image);
  }
  void Truncate(const std::string& image) const {
    WriteFileBytes(image, FileBytes(image).substr(0, 600));
  }
  std::vector<Finished> Run(const std::vector<std::string>& trainings) const {
    std::vector<std::string> commands;
    for (const std::string& flags : trainings) {
      commands.push_back(Command("--epochs 1 --batch-size 3 --data-dir " +
                                 data_dir_ + " " + flags));
    }
    return RunCommands(commands);
  }

  const TemporaryDirectory own_data_;
  const std::string data_dir_;
  const std::string for_training_ = data_dir_ + "/photo/horse/pic_002.jpg";
  const std::string for_testing_ = data_dir_ + "/sketch/horse/pic_002.jpg";
};

TEST_F(UnreadableImagesTest, OneEndsAllRanksWithAnErrorPrintedOnce) {
  Truncate(for_training_);
  for (const Finished& training :
       Run({"--workers 0", "--workers 2", "--no-sync", "--barrier-only"})) {
    EXPECT_EQ(training.exit_code, 2) << training.output;
    EXPECT_EQ(CountOccurrences(training.output, for_training_), 1)
        << training.output;
    EXPECT_THAT(training.output,
                AllOf(HasSubstr("cannot read the training data on rank "),
                      HasSubstr("; --check-data lists all that cannot be "
                                "read, --skip-unreadable does without")));
  }
}

TEST_F(UnreadableImagesTest, OneThatAnotherTryMayReadIsNoWrongInput) {
  const auto expect_error = [](const Finished& run, const std::string& image) {
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_EQ(CountOccurrences(run.output, image), 1) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr(": Input/output error"),
                                  Not(HasSubstr("; --check-data"))));
  };
  MakeFail(for_testing_);
  expect_error(Run({"--skip-unreadable --max-steps 1"}).front(), for_testing_);
  MakeFail(for_training_);
  for (const Finished& run :
       Run({"--workers 2", "--skip-unreadable", "--no-sync", "--check-data"})) {
    expect_error(run, for_training_);
  }
}

TEST_F(UnreadableImagesTest, NothingIsSavedAfterOne) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(data_dir_)) {
    if (entry.is_regular_file()) WriteFileBytes(entry.path(), "");
  }
  const std::string saves = "--checkpoint-every-steps 1 --checkpoint " +
                            (scratch_ / "checkpoint.pt").string();
  const std::vector<Finished> trainings =
      Run({saves, saves + ".1 --no-sync", saves + ".2 --barrier-only",
           "--skip-unreadable"});
  for (const Finished& training : trainings) {
    EXPECT_EQ(training.exit_code, 2) << training.output;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
  EXPECT_THAT(trainings.back().output,
              AllOf(HasSubstr("none of 100 images in place of another"),
                    HasSubstr("; --check-data lists all"),
                    Not(HasSubstr("--skip-unreadable"))));
}

TEST_F(UnreadableImagesTest, OneOfTheEvaluationEndsAllRanks) {
  Truncate(for_testing_);
  const Finished training = Run({"--max-steps 1"}).front();
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, for_testing_), 1)
      << training.output;
  EXPECT_THAT(training.output, HasSubstr("cannot read the test data on rank "));
}

TEST_F(UnreadableImagesTest, OnesToBeSkippedAreCounted) {
  Truncate(for_training_);
  WriteFileBytes(for_testing_, "");
  std::vector<std::string> flags;
  for (const char* workers : {"0", "2"}) {
    flags.push_back("--epochs 2 --skip-unreadable --workers " +
                    std::string(workers) + " --report " +
                    (scratch_ / workers).string());
  }
  nlohmann::json digests;
  const char* workers = "0";
  for (const Finished& training : Run(flags)) {
    const std::string report = scratch_ / std::exchange(workers, "2");
    ASSERT_EQ(training.exit_code, 0) << training.output;
    const nlohmann::json json = ReadReport(report);
    EXPECT_EQ(json["steps"], 14);
    EXPECT_EQ(json["unreadable"]["replaced"], 2);  // in each epoch
    EXPECT_EQ(json["unreadable"]["left_out"], 1);
    EXPECT_EQ(json["evaluation"]["images"], 13);
    EXPECT_EQ(json["parameters_identical"], true);
    EXPECT_THAT(training.output,
                HasSubstr("trains on another image instead: cannot decode the "
                          "JPEG '" +
                          for_training_));
    EXPECT_THAT(training.output,
                HasSubstr("left out of the evaluation: '" + for_testing_));
    // Though both epochs met it.
    EXPECT_EQ(CountOccurrences(training.output, for_testing_), 1)
        << training.output;
    if (digests.is_null()) digests = json["parameter_digests"];
    EXPECT_EQ(json["parameter_digests"], digests);
  }
}

TEST_F(UnreadableImagesTest, AreFoundByCheckingTheData) {
  const std::string png = data_dir_ + "/photo/dog/a.JPEG";
  const std::string link = data_dir_ + "/photo/dog/link.jpg";
  WriteImageFile(png, {.width = 1, .height = 1, .pixels = {1, 2, 3}},
                 ImageFormat::kPng);
  const Finished sound = Run({"--check-data"}).front();
  EXPECT_EQ(sound.exit_code, 0) << sound.output;
  EXPECT_EQ(CountOccurrences(sound.output, "all 57 images can be read"), 1)
      << sound.output;
  EXPECT_EQ(CountOccurrences(sound.output, "step"), 0) << sound.output;

  Truncate(for_training_);
  WriteFileBytes(for_testing_, "");
  std::filesystem::create_symlink("/nonexistent", link);
  const Finished damaged = Run({"--check-data --workers 2"}).front();
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
