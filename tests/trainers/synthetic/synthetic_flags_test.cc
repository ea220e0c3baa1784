#include "trainers/synthetic/synthetic_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;

support::CommandLine<SyntheticFlags> Parse(const std::string& text) {
  std::vector<std::string> words = {"train_synthetic"};
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return ParseSyntheticFlags(static_cast<int>(arguments.size()),
                             arguments.data());
}

TEST(SyntheticFlagsTest, DefaultsAreThoseOfTfCnnBenchmarks) {
  const support::CommandLine<SyntheticFlags> result = Parse("");
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_EQ(result.flags->num_warmup_batches, 10);
  EXPECT_EQ(result.flags->num_batches, 100);
  EXPECT_EQ(result.flags->display_every, 10);
  EXPECT_EQ(result.flags->task.data_format, "NCHW");
}

TEST(SyntheticFlagsTest, TheLastOfAFlagCounts) {
  const support::CommandLine<SyntheticFlags> result =
      Parse("--instances 4 --report a.json --instances=1 --report=b");
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_EQ(result.flags->instances, 1);
  EXPECT_EQ(result.flags->report, "b");
}

TEST(SyntheticFlagsTest, BatchesOfRanksAndPathsDoNotTellBenchmarksApart) {
  const Arguments arguments = ArgumentsOf(*Parse("--report DIR").flags);
  EXPECT_TRUE(arguments.contains("model"));
  EXPECT_TRUE(arguments.contains("views"));
  EXPECT_FALSE(arguments.contains("report"));
  EXPECT_FALSE(arguments.contains("instances"));
}

TEST(SyntheticFlagsTest, InstancesOfAFolderAndOfAFileReportApart) {
  EXPECT_EQ(ReportOfInstance("runs/1", 2), "runs/1/instance2");
  EXPECT_EQ(ReportOfInstance("runs/baselines.json", 2),
            "runs/baselines_2.json");
  EXPECT_EQ(ReportOfInstance("all.json", 0), "all_0.json");
}

TEST(SyntheticFlagsTest, BenchmarkHasTheModelsNameUnlessItHasOne) {
  EXPECT_EQ(Parse("--model vae").flags->benchmark(), "vae");
  EXPECT_EQ(Parse("--model vae --name toy").flags->benchmark(), "toy");
}

TEST(SyntheticFlagsTest, PrecisionIsTheOptimisationLevelOfTheReport) {
  const auto level = [](const char* flags) {
    return std::get<std::string>(ArgumentsOf(*Parse(flags).flags)["opt_level"]);
  };
  EXPECT_EQ(level("--model vae"), "O0");
  EXPECT_EQ(level("--model vae --bf16"), "O1");
}

struct Refused {
  const char* flags;
  const char* reason;
};

class RefusedFlagsTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedFlagsTest, AreRefusedWithTheReason) {
  const support::CommandLine<SyntheticFlags> result = Parse(GetParam().flags);
  EXPECT_FALSE(result.flags);
  EXPECT_EQ(result.end.exit_code, 2);
  EXPECT_THAT(result.end.text, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    SyntheticFlagsTest, RefusedFlagsTest,
    ::testing::Values(
        Refused{"--model resnet51", "resnet51"},
        Refused{"--data-format nchw", "nchw"},
        Refused{"--batch-size 0", "--batch-size"},
        Refused{"--batchsize 1", "did you mean --batch-size"},
        Refused{"--model mlp --image-size 32",
                "--image-size does not suit --model mlp; its flags are: "
                "--classes, --hidden"},
        Refused{"--model vae --data-format NHWC",
                "--data-format does not suit --model vae"},
        Refused{"--model alexnet --image-size 62",
                "--image-size is 62; --model alexnet takes at least 63"},
        Refused{"--forward-only --fp16-allreduce",
                "--fp16-allreduce is about gradients"},
        Refused{"--forward-only --views", "--views is about gradients"},
        Refused{"--forward-only --check", "--check is about gradients"},
        Refused{"--gradients-only --optimizer adam --check",
                "--check is about gradients, but with --gradients-only"},
        Refused{"--gradients-only --forward-only", "--forward-only"},
        Refused{"--gradients-only --model image_loading",
                "--gradients-only is about gradients"},
        Refused{"--model image_loading --use-adasum",
                "--use-adasum is about gradients, but with --model "
                "image_loading"},
        Refused{"--repeat 10", "--repeat is 10; expected more than 10"},
        Refused{"--repeat 20 --num-batches 5", "--num-batches"},
        Refused{"--repeat 20 --display-every 5", "--display-every"},
        Refused{"--number 5", "--repeat"}, Refused{"--skip 5", "--repeat"},
        Refused{"--instances 0", "--instances"},
        Refused{"--share-memory", "among --instances, but there is one"},
        Refused{"--name a/b", "--name is 'a/b'"},
        Refused{"--optimizer rmsprop", "rmsprop"},
        Refused{"--forward-only --clip-norm 1",
                "--clip-norm is about gradients"},
        Refused{"--model vae --data-dir x",
                "--data-dir does not suit --model vae"},
        Refused{"--model image_loading --workers 2",
                "give their folder by --data-dir"}));

}  // namespace
}  // namespace hvdlite::trainers
