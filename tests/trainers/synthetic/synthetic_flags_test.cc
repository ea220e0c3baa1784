#include "trainers/synthetic/synthetic_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;

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

struct Refused {
  const char* flags;
  const char* reason;
};

class RefusedFlagsTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedFlagsTest, AreRefusedWithTheReason) {
  const support::CommandLine<SyntheticFlags> result = Parse(GetParam().flags);
  EXPECT_FALSE(result.flags);
  EXPECT_EQ(result.end.exit_code, 2);
  EXPECT_THAT(result.end.text, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    SyntheticFlagsTest, RefusedFlagsTest,
    testing::Values(
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
        Refused{"--model image_loading --use-adasum",
                "--use-adasum is about gradients, but with --model "
                "image_loading"},
        Refused{"--repeat 10", "--repeat is 10; expected more than 10"},
        Refused{"--repeat 20 --num-batches 5", "--num-batches"},
        Refused{"--repeat 20 --display-every 5", "--display-every"},
        Refused{"--number 5", "--repeat"}, Refused{"--skip 5", "--repeat"},
        Refused{"--instances 0", "--instances"},
        Refused{"--instances 2 --report a.json",
                "--report is the file 'a.json'"}));

}  // namespace
}  // namespace hvdlite::trainers
