#include "trainers/resnet50_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;

support::CommandLine<ResNet50Flags> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "train_resnet50");
  return ParseResNet50Flags(static_cast<int>(arguments.size()),
                            arguments.data());
}

TEST(ResNet50FlagsTest, DefaultsTrainResnet50) {
  const support::CommandLine<ResNet50Flags> result = Parse({"--synthetic"});
  ASSERT_TRUE(result.flags) << result.end.text;
  ResNet50Flags expected;
  expected.synthetic = true;
  EXPECT_EQ(*result.flags, expected);
}

TEST(ResNet50FlagsTest, ReadsListsAndNumbers) {
  const support::CommandLine<ResNet50Flags> result =
      Parse({"--data-dir", "d", "--lr-steps", "2,3.5", "--epochs=7"});
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_THAT(result.flags->lr_steps, ::testing::ElementsAre(2, 3.5));
  EXPECT_EQ(result.flags->run.epochs, 7);
}

TEST(ResNet50FlagsTest, ReadsTheNamesOfDomains) {
  const support::CommandLine<ResNet50Flags> result =
      Parse({"--data-dir", "d", "--train-domains", "photo,cartoon",
             "--val-domains", "sketch", "--workers", "3"});
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_THAT(result.flags->train_domains,
              ::testing::ElementsAre("photo", "cartoon"));
  EXPECT_THAT(result.flags->val_domains, ::testing::ElementsAre("sketch"));
  EXPECT_EQ(result.flags->workers, 3);
}

TEST(ResNet50FlagsTest, StemDependsOnImageSizeByDefault) {
  const auto small = [](const char* stem, int64_t image_size) {
    ResNet50Flags flags;
    flags.stem = stem;
    flags.image_size = image_size;
    return flags.has_small_image_stem();
  };
  EXPECT_TRUE(small("auto", 32));
  EXPECT_FALSE(small("auto", 64));
  EXPECT_FALSE(small("imagenet", 32));
  EXPECT_TRUE(small("cifar", 224));
}

TEST(ResNet50FlagsTest, LastValueOfAFlagCounts) {
  const support::CommandLine<ResNet50Flags> result =
      Parse({"--synthetic", "--epochs", "2", "--epochs", "3", "--lr-steps",
             "1,2", "--synthetic"});
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_EQ(result.flags->run.epochs, 3);
  EXPECT_THAT(result.flags->lr_steps, ::testing::ElementsAre(1, 2));
}

TEST(ResNet50FlagsTest, HelpExplainsEveryFlagAndEndsWithSuccess) {
  const support::CommandLine<ResNet50Flags> result = Parse({"--help"});
  EXPECT_FALSE(result.flags);
  EXPECT_EQ(result.end.exit_code, 0);
  std::istringstream flags(
      "--arch --stem --zero-init-residual --memory-format --bf16 "
      "--data-dir --synthetic --synthetic-images --image-size --classes "
      "--augmentation --train-domains --val-domains --skip-unreadable "
      "--check-data --workers --epochs --max-steps --batch-size-per-rank "
      "--global-batch-size --batch-size --eval-every --lr --momentum "
      "--weight-decay --nesterov --warmup-epochs --lr-steps --lr-gamma "
      "--checkpoint --checkpoint-every --checkpoint-every-steps "
      "--checkpoint-every-minutes --resume --seed --threads "
      "--inter-op-threads --no-onednn --log-interval --report "
      "--overwrite --no-sync --barrier-only");
  for (std::string flag; flags >> flag;) {
    EXPECT_THAT(result.end.text, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
