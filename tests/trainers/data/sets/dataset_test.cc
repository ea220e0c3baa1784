#include "trainers/data/sets/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <tuple>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/sets/patterns.h"
#include "trainers/data/transforms/augmentation.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr float kBlackRed = -0.4914F / 0.2470F;

TEST(AugmentationTest, DependsOnlyOnSeedEpochAndSample) {
  const auto draw = [](uint64_t seed, int64_t epoch, int64_t sample) {
    const Augmentation a = Augmentation::Draw(seed, epoch, sample);
    return std::tuple(a.shift_x, a.shift_y, a.flip);
  };
  std::set<std::tuple<int, int, bool>> by_seed;
  std::set<std::tuple<int, int, bool>> by_epoch;
  std::set<std::tuple<int, int, bool>> by_sample;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(draw(1, 2, i), draw(1, 2, i));
    by_seed.insert(draw(i, 2, 3));
    by_epoch.insert(draw(1, i, 3));
    by_sample.insert(draw(1, 2, i));
  }
  EXPECT_GT(by_seed.size(), 20U);
  EXPECT_GT(by_epoch.size(), 20U);
  EXPECT_GT(by_sample.size(), 20U);
}

TEST(AugmentationTest, UsesAllShiftsAndFlipsHalfOfTheImages) {
  std::set<int> shifts;
  int flips = 0;
  for (int i = 0; i < 1000; ++i) {
    const Augmentation augmentation = Augmentation::Draw(1, 0, i);
    shifts.insert(augmentation.shift_x);
    flips += augmentation.flip ? 1 : 0;
  }
  EXPECT_EQ(shifts, (std::set<int>{-4, -3, -2, -1, 0, 1, 2, 3, 4}));
  EXPECT_NEAR(flips, 500, 60);
}

TEST(AugmentationTest, ShiftsPadsFlipsAndNormalises) {
  std::vector<uint8_t> image(kImageBytes, 0);
  image[5 * kImageSide + 7] = 255;  // red, y 5, x 7
  std::vector<float> output(kImageBytes);
  const float white_red = (1.0F - 0.4914F) / 0.2470F;

  AugmentAndNormalise(image.data(), {}, output.data());
  EXPECT_FLOAT_EQ(output[5 * kImageSide + 7], white_red);
  EXPECT_FLOAT_EQ(output[0], kBlackRed);

  AugmentAndNormalise(image.data(), {.shift_x = 3, .shift_y = -4},
                      output.data());
  EXPECT_FLOAT_EQ(output[9 * kImageSide + 4], white_red);

  AugmentAndNormalise(image.data(), {.flip = true}, output.data());
  EXPECT_FLOAT_EQ(output[5 * kImageSide + (31 - 7)], white_red);

  std::vector<uint8_t> white(kImageBytes, 255);
  AugmentAndNormalise(white.data(), {.shift_x = 4, .shift_y = -2},
                      output.data());
  EXPECT_FLOAT_EQ(output[1 * kImageSide], kBlackRed);       // above
  EXPECT_FLOAT_EQ(output[2 * kImageSide], white_red);       // inside
  EXPECT_FLOAT_EQ(output[2 * kImageSide + 27], white_red);  // inside
  EXPECT_FLOAT_EQ(output[2 * kImageSide + 28], kBlackRed);  // to the right
}

TEST(ImageDatasetTest, SampleIsTheSameInAnyBatch) {
  ImageDataset dataset(MakePatternImages(20, 1), /*augmentation_seed=*/3);
  const Batch together = dataset.Load({4, 11, 7}, /*epoch=*/2);
  const Batch alone = dataset.Load({11}, /*epoch=*/2);
  EXPECT_EQ(together.images.sizes(), (std::vector<int64_t>{3, 3, 32, 32}));
  EXPECT_TRUE(together.images[1].equal(alone.images[0]));
  EXPECT_EQ(together.labels[1].item<int64_t>(), 1);
  EXPECT_FALSE(dataset.Load({11}, /*epoch=*/3).images.equal(alone.images));
}

TEST(ImageDatasetTest, ImagesAreOnlyNormalisedWithoutASeed) {
  ImageSet images = MakePatternImages(1, 1);
  images.pixels.assign(kImageBytes, 0);
  ImageDataset dataset(images, std::nullopt);
  const Batch batch = dataset.Load({0}, 0);
  EXPECT_TRUE(batch.images[0][0].eq(kBlackRed).all().item<bool>());
  EXPECT_TRUE(dataset.Load({0}, 1).images.equal(batch.images));
}

TEST(DatasetTest, RecipesDescribeTheTransformations) {
  EXPECT_EQ(DigitDataset(DigitSet()).recipe(),
            "normalised by the mean 0.1307 and the deviation 0.3081");
  const ImageSet images = MakePatternImages(1, 1);
  EXPECT_EQ(ImageDataset(images, 3).recipe(),
            "CIFAR-10's recipe: padded by 4 pixels, random crop of 32x32, "
            "flipped in half of the cases, normalised by the mean 0.4914 "
            "0.4822 0.4465 and the deviation 0.247 0.2435 0.2616");
  EXPECT_EQ(ImageDataset(images, std::nullopt).recipe(),
            "CIFAR-10's recipe: unchanged, normalised by the mean 0.4914 "
            "0.4822 0.4465 and the deviation 0.247 0.2435 0.2616");
}

TEST(SyntheticDatasetTest, IsOneFixedBatchPerSeed) {
  const SyntheticOptions options = {
      .size = 100, .batch_size = 4, .image_side = 16, .classes = 5, .seed = 9};
  SyntheticDataset dataset(options);
  const Batch batch = dataset.Load({0, 1, 2, 3}, 0);
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{4, 3, 16, 16}));
  EXPECT_LT(batch.labels.max().item<int64_t>(), 5);
  EXPECT_TRUE(batch.images.equal(dataset.Load({7, 8, 9, 1}, 3).images));
  EXPECT_TRUE(batch.images.equal(
      SyntheticDataset(options).Load({0, 1, 2, 3}, 0).images));
}

constexpr int64_t kImages = 24;
constexpr int64_t kSide = 8;
constexpr uint64_t kSeed = 3;

// Files of pictures; image i has the label i % 7.
class FolderDatasetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < kImages; ++i) {
      files_.push_back(
          {.path = directory_ / (std::to_string(i) + ".jpg"), .label = i % 7});
      WriteImageFile(files_.back().path, Picture(i), ImageFormat::kPng);
    }
  }
  static RgbImage Picture(int64_t i) {
    return MakePatternPicture(/*domain=*/0, static_cast<int>(i % 7),
                              /*side=*/12, /*seed=*/1, i);
  }
  FolderDataset ForTraining(ImageRecipe recipe = ImageRecipe::kImageNet) const {
    return {
        files_,
        {.recipe = recipe, .image_side = kSide, .augmentation_seed = kSeed}};
  }
  FolderDataset ForEvaluation(
      ImageRecipe recipe = ImageRecipe::kImageNet) const {
    return {files_, {.recipe = recipe, .image_side = kSide}};
  }
  FolderDataset SkippingUnreadable(std::optional<uint64_t> seed) const {
    return {files_,
            {.image_side = kSide,
             .augmentation_seed = seed,
             .skip_unreadable = true}};
  }

  // Picture `i` as transformed for training in that epoch.
  static torch::Tensor AsDrawn(ImageRecipe recipe, uint64_t epoch, uint64_t i) {
    return ToTensor(TransformForTraining(
        Picture(static_cast<int64_t>(i)),
        ImageAugmentation::Draw(recipe, 12, 12,
                                base::KeyedRandom{kSeed, epoch, i}),
        kSide));
  }
  static torch::Tensor ToTensor(PlanarImage image) {
    return torch::tensor(image.values).view({3, kSide, kSide});
  }

  const TemporaryDirectory directory_;
  std::vector<LabelledFile> files_;
};

TEST_F(FolderDatasetTest, EvaluationImagesAreResizedAndNormalised) {
  FolderDataset dataset = ForEvaluation();
  EXPECT_EQ(dataset.size(), kImages);
  const Batch batch = dataset.Load({9, 2}, /*epoch=*/5);
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{2, 3, kSide, kSide}));
  EXPECT_TRUE(batch.labels.equal(torch::tensor({2, 2}, torch::kInt64)));
  EXPECT_TRUE(batch.images[0].equal(ToTensor(
      TransformForEvaluation(Picture(9), ImageRecipe::kImageNet, kSide))));
}

TEST_F(FolderDatasetTest, TrainingImagesDependOnSeedEpochAndIndex) {
  FolderDataset dataset = ForTraining();
  EXPECT_TRUE(dataset.Load({9}, /*epoch=*/5)
                  .images[0]
                  .equal(AsDrawn(ImageRecipe::kImageNet, /*epoch=*/5, 9)));
  EXPECT_FALSE(dataset.Load({9}, 5).images.equal(dataset.Load({9}, 6).images));
}

TEST_F(FolderDatasetTest, RecipeChoosesTheTransformations) {
  constexpr auto kRecipe = ImageRecipe::kDomainGeneralisation;
  EXPECT_TRUE(ForTraining(kRecipe)
                  .Load({9}, /*epoch=*/5)
                  .images[0]
                  .equal(AsDrawn(kRecipe, /*epoch=*/5, 9)));
  EXPECT_TRUE(ForEvaluation(kRecipe).Load({9}, 0).images[0].equal(
      ToTensor(TransformForEvaluation(Picture(9), kRecipe, kSide))));
  EXPECT_EQ(ForTraining(kRecipe).recipe(), DescribeTraining(kRecipe, kSide));
  EXPECT_EQ(ForEvaluation().recipe(),
            DescribeEvaluation(ImageRecipe::kImageNet, kSide));
}

TEST_F(FolderDatasetTest, TwoRanksTogetherGetTheSameImagesAsOne) {
  FolderDataset dataset = ForTraining();
  const Batch whole = dataset.Load({3, 9, 1, 4, 7, 5, 2, 6}, /*epoch=*/1);
  const Batch first = dataset.Load({3, 9, 1, 4}, /*epoch=*/1);
  const Batch second = dataset.Load({7, 5, 2, 6}, /*epoch=*/1);
  EXPECT_TRUE(whole.images.equal(torch::cat({first.images, second.images})));
  EXPECT_TRUE(whole.labels.equal(torch::cat({first.labels, second.labels})));
}

TEST_F(FolderDatasetTest, BatchesDoNotDependOnTheNumberOfWorkers) {
  FolderDataset dataset = ForTraining();
  const std::vector<std::vector<int64_t>> indices = {
      {3, 9, 1, 4}, {7, 5, 2, 6}, {8, 0, 3, 1}, {2, 9}, {}};
  for (const int workers : {0, 1, 3}) {
    Prefetcher<Batch> batches =
        PrefetchBatches(dataset, indices, /*epoch=*/2, workers);
    for (const std::vector<int64_t>& of_batch : indices) {
      const Batch expected = dataset.Load(of_batch, 2);
      const Batch batch = batches.Next();
      EXPECT_TRUE(batch.images.equal(expected.images)) << workers;
      EXPECT_TRUE(batch.labels.equal(expected.labels)) << workers;
    }
  }
}

TEST_F(FolderDatasetTest, CorruptImageIsAnErrorThatNamesIt) {
  WriteFileBytes(files_[5].path, "not an image");
  FolderDataset dataset = ForTraining();
  EXPECT_THAT(
      [&] {
        dataset.Load({4, 5}, 0);
      },
      ThrowsMessage<support::InputError>(HasSubstr(files_[5].path.string())));
}

TEST_F(FolderDatasetTest, CheckFindsUnreadableImages) {
  WriteFileBytes(files_[5].path, "");
  FolderDataset dataset = ForTraining();
  EXPECT_TRUE(dataset.reads_files());
  dataset.Check(4);
  EXPECT_THAT(
      [&] { dataset.Check(5); },
      ThrowsMessage<support::InputError>(HasSubstr(files_[5].path.string())));
}

TEST_F(FolderDatasetTest, TrainingReplacesSkippedImages) {
  FolderDataset dataset = SkippingUnreadable(kSeed);
  const Batch whole = dataset.Load({4, 5, 6}, /*epoch=*/1);
  EXPECT_TRUE(whole.unreadable.empty());
  WriteFileBytes(files_[5].path, "not an image");
  const Batch batch = dataset.Load({4, 5, 6}, /*epoch=*/1);
  EXPECT_THAT(batch.unreadable,
              ::testing::ElementsAre(HasSubstr(files_[5].path.string())));
  EXPECT_EQ(batch.labels.size(0), 3);
  EXPECT_TRUE(batch.images[0].equal(whole.images[0]));
  EXPECT_FALSE(batch.images[1].equal(whole.images[1]));
  EXPECT_TRUE(batch.images[2].equal(whole.images[2]));
  // The replacement does not depend on rank or batch.
  const Batch alone = dataset.Load({5}, /*epoch=*/1);
  EXPECT_TRUE(alone.images[0].equal(batch.images[1]));
  EXPECT_TRUE(alone.labels[0].equal(batch.labels[1]));
  // Each epoch has another replacement, which can always be read.
  std::set<int64_t> labels;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    labels.insert(dataset.Load({5}, epoch).labels[0].item<int64_t>());
  }
  EXPECT_GT(labels.size(), 3U);
}

TEST_F(FolderDatasetTest, ImageWithATemporaryErrorIsNeverSkipped) {
  std::filesystem::remove(files_[5].path);
  // Reading this file is an I/O error.
  std::filesystem::create_symlink("/proc/self/mem", files_[5].path);
  for (const std::optional<uint64_t> seed :
       {std::optional(kSeed), std::optional<uint64_t>()}) {
    FolderDataset dataset = SkippingUnreadable(seed);
    try {
      dataset.Load({5}, 0);
      ADD_FAILURE() << "was read";
    } catch (const support::InputError& error) {
      ADD_FAILURE() << error.what();
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(files_[5].path.string() + "': Input/output error"));
    }
  }
}

TEST_F(FolderDatasetTest, ImageIsNotReplacedByItself) {
  files_.resize(3);
  WriteFileBytes(files_[1].path, "not an image");
  FolderDataset dataset = SkippingUnreadable(kSeed);
  std::set<int64_t> labels;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    const Batch batch = dataset.Load({1}, epoch);
    EXPECT_EQ(batch.unreadable.size(), 1U);
    labels.insert(batch.labels.item<int64_t>());
  }
  EXPECT_EQ(labels, (std::set<int64_t>{0, 2}));
}

TEST_F(FolderDatasetTest, SingleUnreadableImageIsAnError) {
  files_.resize(1);
  WriteFileBytes(files_[0].path, "");
  FolderDataset dataset = SkippingUnreadable(kSeed);
  EXPECT_THAT([&] { dataset.Load({0}, 0); },
              ThrowsMessage<support::InputError>(HasSubstr(
                  "the only image of this data set cannot be read: '" +
                  files_[0].path.string())));
}

TEST_F(FolderDatasetTest, EvaluationOmitsSkippedImages) {
  WriteFileBytes(files_[5].path, "not an image");
  FolderDataset dataset = SkippingUnreadable(std::nullopt);
  const Batch batch = dataset.Load({4, 5, 6}, /*epoch=*/0);
  EXPECT_EQ(batch.unreadable.size(), 1U);
  EXPECT_TRUE(batch.labels.equal(torch::tensor({4, 6}, torch::kInt64)));
  EXPECT_TRUE(batch.images.equal(dataset.Load({4, 6}, 0).images));
  EXPECT_EQ(dataset.Load({5}, 0).images.size(0), 0);
}

TEST_F(FolderDatasetTest, NoReadableImageIsAnErrorThatNamesOne) {
  for (const LabelledFile& file : files_) WriteFileBytes(file.path, "");
  FolderDataset dataset = SkippingUnreadable(kSeed);
  EXPECT_THAT([&] { dataset.Load({5}, 0); },
              ThrowsMessage<support::InputError>(
                  HasSubstr("none of 100 images that could replace another can "
                            "be read; the last error: '" +
                            directory_.path().string())));
}

TEST_F(FolderDatasetTest, InputErrorsOfPrefetchedBatchesAreThrown) {
  WriteFileBytes(files_[5].path, "not an image");
  FolderDataset dataset = ForTraining();
  for (const int workers : {0, 2}) {
    Prefetcher<Batch> batches =
        PrefetchBatches(dataset, {{4}, {5}}, /*epoch=*/0, workers);
    EXPECT_EQ(batches.Next().labels.item<int64_t>(), 4);
    EXPECT_THAT(
        [&] { batches.Next(); },
        ThrowsMessage<support::InputError>(HasSubstr(files_[5].path.string())));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
