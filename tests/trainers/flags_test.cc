#include "trainers/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainers/temporary_directory.h"
#include "trainers/input_error.h"
#include "trainers/report.h"

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;

CommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "train_resnet50");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(FlagsTest, DefaultsTrainResnet50) {
  const CommandLine result = Parse({"--synthetic"});
  ASSERT_TRUE(result.flags) << result.text;
  Flags expected;
  expected.synthetic = true;
  EXPECT_EQ(*result.flags, expected);
}

TEST(FlagsTest, ReadsListsAndNumbers) {
  const CommandLine result =
      Parse({"--data-dir", "d", "--lr-steps", "2,3.5", "--epochs=7"});
  ASSERT_TRUE(result.flags) << result.text;
  EXPECT_THAT(result.flags->lr_steps, testing::ElementsAre(2, 3.5));
  EXPECT_EQ(result.flags->epochs, 7);
  EXPECT_EQ(result.flags->classes, 10);
  EXPECT_EQ(result.flags->image_size, 32);
}

TEST(FlagsTest, HelpExplainsEveryFlagAndEndsWithSuccess) {
  const CommandLine result = Parse({"--help"});
  EXPECT_FALSE(result.flags);
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--arch",
                           "--zero-init-residual",
                           "--memory-format",
                           "--data-dir",
                           "--synthetic",
                           "--synthetic-images",
                           "--image-size",
                           "--classes",
                           "--epochs",
                           "--max-steps",
                           "--batch-size",
                           "--eval-every",
                           "--lr",
                           "--momentum",
                           "--weight-decay",
                           "--nesterov",
                           "--warmup-epochs",
                           "--lr-steps",
                           "--lr-gamma",
                           "--checkpoint",
                           "--checkpoint-every",
                           "--resume",
                           "--seed",
                           "--threads",
                           "--log-interval",
                           "--report",
                           "--no-sync",
                           "--barrier-only"}) {
    EXPECT_THAT(result.text, HasSubstr(flag));
  }
}

struct BadFlags {
  const char* test_name;
  std::vector<const char*> arguments;
  const char* message;
};

class BadFlagsTest : public testing::TestWithParam<BadFlags> {};

TEST_P(BadFlagsTest, IsAnErrorThatNamesTheFlag) {
  const CommandLine result = Parse(GetParam().arguments);
  EXPECT_FALSE(result.flags);
  EXPECT_EQ(result.exit_code, kInputErrorExitCode);
  EXPECT_THAT(result.text, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLines, BadFlagsTest,
    testing::Values(
        BadFlags{"Unknown",
                 {"--synthetic", "--epoch", "3"},
                 "unknown flag --epoch; did you mean --epochs?"},
        BadFlags{"Positional", {"--synthetic", "x"}, "unexpected argument 'x'"},
        BadFlags{"NotANumber", {"--synthetic", "--epochs", "x"}, "--epochs"},
        BadFlags{"Negative", {"--synthetic", "--lr", "-1"}, "--lr"},
        BadFlags{"Arch", {"--synthetic", "--arch", "vgg"}, "resnet50"},
        BadFlags{"NoData", {"--epochs", "1"}, "--data-dir"},
        BadFlags{"BothData", {"--synthetic", "--data-dir", "d"}, "--data-dir"},
        BadFlags{"ClassesOfFiles",
                 {"--data-dir", "d", "--classes", "5"},
                 "--classes"},
        BadFlags{"UnorderedSteps",
                 {"--synthetic", "--lr-steps", "3,2"},
                 "--lr-steps"}),
    [](const auto& info) { return info.param.test_name; });

TEST(ReportTest, SummarisesIntervals) {
  const Statistics odd = Summarise({3, 1, 2});
  EXPECT_DOUBLE_EQ(odd.median, 2);
  EXPECT_DOUBLE_EQ(odd.mean, 2);
  EXPECT_DOUBLE_EQ(odd.min, 1);
  EXPECT_DOUBLE_EQ(odd.max, 3);
  EXPECT_DOUBLE_EQ(Summarise({4, 1, 3, 2}).median, 2.5);
  EXPECT_DOUBLE_EQ(Summarise({}).mean, 0);
}

TEST(ReportTest, HoldsSettingsSpeedLossAndDigests) {
  const TemporaryDirectory directory;
  Report report = {.flags = {},
                   .world_size = 2,
                   .steps = 20,
                   .seconds = 4,
                   .images_per_second = {10, 30},
                   .losses = {2.5, 1.5},
                   .evaluation = Evaluation{0.5, 0.75, 100},
                   .parameter_digests = {-1, -1}};
  report.flags.arch = "resnet18";
  const std::string file = directory / "report.json";
  WriteReport(file, report);
  const auto json = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(json["settings"]["arch"], "resnet18");
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["images_per_second"]["median"], 20);
  EXPECT_EQ(json["loss"]["last"], 1.5);
  EXPECT_EQ(json["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(json["parameter_digests"][0], "ffffffffffffffff");
  EXPECT_EQ(json["parameters_identical"], true);

  report.parameter_digests = {-1, 5};
  WriteReport(file, report);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file))["parameters_identical"],
            false);
  EXPECT_THAT([&] { WriteReport("/nonexistent/r.json", report); },
              testing::ThrowsMessage<InputError>(HasSubstr("r.json")));
}

}  // namespace
}  // namespace hvdlite::trainers
