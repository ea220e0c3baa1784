// Trains on folders of images as a user does, on two ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;

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
class TrainPacsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryDirectory();
    Generate(*data_, /*images=*/24);
  }
  static void TearDownTestSuite() { delete data_; }

  static Finished TrainOnTwoRanks(const std::string& flags) {
    return RunCommand(kMpirun + " 2 " + kTrain +
                      " --arch resnet8 --image-size 32 --batch-size 14 "
                      "--lr 0.02 --warmup-epochs 1 "
                      "--augmentation domain-generalisation " +
                      flags);
  }

  // Trains on the generated files with a report and returns that.
  nlohmann::json Train(const std::string& flags) {
    const std::string report = scratch_ / "report.json";
    const Finished training =
        TrainOnTwoRanks("--data-dir " + data_->path().string() + " --overwrite "
                        "--report " + report + " " + flags);
    EXPECT_EQ(training.exit_code, 0) << training.output;
    output_ = training.output;
    return ReadReport(report);
  }

  static TemporaryDirectory* data_;
  const TemporaryDirectory scratch_;
  std::string output_;  // of the last training
};

TemporaryDirectory* TrainPacsTest::data_ = nullptr;

TEST_F(TrainPacsTest, LearnsClassesThatHoldInTheDomainLeftOut) {
  const nlohmann::json report = Train("--epochs 6 --workers 1");
  EXPECT_EQ(CountOccurrences(
                output_,
                "data: folders of images, training on art_painting, cartoon, "
                "photo, testing on sketch; 504 training and 168 test images "
                "of 7 classes\n"),
            1)
      << output_;
  EXPECT_EQ(report["settings"]["classes"], 7);
  EXPECT_EQ(report["evaluation"]["images"], 168);
  EXPECT_GT(report["evaluation"]["accuracy"], 0.4);  // chance: 1 in 7
  EXPECT_EQ(report["parameters_identical"], true);
}

TEST_F(TrainPacsTest, ReportNamesTheRecipes) {
  const nlohmann::json own = Train("--max-steps 1");
  EXPECT_THAT(own["data"]["training images"].get<std::string>(),
              HasSubstr("domain generalisation's recipe: random crop of 0.8 "));
  const nlohmann::json usual = Train("--max-steps 1 --augmentation auto");
  for (const auto& [kind, recipe] :
       {std::pair("training images",
                  "ImageNet's recipe: random crop of 0.08 to 1 of the area"),
        std::pair("test images",
                  "ImageNet's recipe: shorter side resized to 37, 32x32 in "
                  "the middle, ")}) {
    EXPECT_THAT(usual["data"][kind].get<std::string>(), HasSubstr(recipe));
    EXPECT_THAT(output_, HasSubstr(std::string(kind) + ": " + recipe));
  }
}

TEST_F(TrainPacsTest, NumberOfWorkersChangesNothing) {
  const nlohmann::json alone = Train("--max-steps 4 --workers 0");
  const nlohmann::json helped = Train("--max-steps 4 --workers 3");
  EXPECT_EQ(alone["parameter_digests"], helped["parameter_digests"]);
  EXPECT_EQ(alone["evaluation"], helped["evaluation"]);
}

TEST_F(TrainPacsTest, WaysToComputeTrainReplicasThatStayEqual) {
  for (const char* flags :
       {"--bf16", "--bf16 --memory-format nhwc", "--memory-format onednn",
        "--no-onednn --inter-op-threads 2"}) {
    const nlohmann::json report =
        Train(std::string(flags) + " --epochs 2 --train-domains cartoon");
    EXPECT_EQ(report["parameters_identical"], true) << flags;
    EXPECT_LT(report["loss"]["last"], report["loss"]["first"]) << flags;
  }
}

TEST_F(TrainPacsTest, DomainsAreThoseAskedFor) {
  const nlohmann::json report =
      Train("--max-steps 1 --train-domains photo,sketch --val-domains cartoon");
  EXPECT_THAT(output_, HasSubstr("training on photo, sketch, testing on "
                                 "cartoon; 336 training and 168 test"));
}

TEST_F(TrainPacsTest, UnknownDomainIsAnErrorPrintedOnce) {
  const Finished training = TrainOnTwoRanks(
      "--data-dir " + data_->path().string() + " --val-domains clipart");
  EXPECT_EQ(training.exit_code, 2) << training.output;
  EXPECT_EQ(CountOccurrences(training.output, "no domain 'clipart'"), 1)
      << training.output;
}

TEST_F(TrainPacsTest, CorruptImageIsAnErrorNamingTheFilePrintedOnce) {
  const TemporaryDirectory directory;
  const std::string data = Generate(directory, /*images=*/2);
  const std::string image = data + "/photo/horse/pic_002.jpg";
  WriteFileBytes(image, FileBytes(image).substr(0, 600));
  for (const char* workers : {"0", "2"}) {
    const Finished training =
        TrainOnTwoRanks("--epochs 1 --data-dir " + data + " --batch-size 3 " +
                        "--workers " + workers);
    EXPECT_NE(training.exit_code, 0);
    EXPECT_EQ(CountOccurrences(training.output, image), 1) << training.output;
  }
}

}  // namespace
}  // namespace hvdlite::trainers
