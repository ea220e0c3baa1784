#include "trainers/data/sets/folder_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/sets/batches.h"
#include "trainers/data/sets/pattern_pictures.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/data/transforms/image_transforms.h"

namespace hvdlite::trainers {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kImages = 24;
constexpr int64_t kSide = 8;
constexpr uint64_t kSeed = 3;

// Files of pictures, image i with label i % 7.
class FolderDatasetTest : public testing::Test {
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
  FolderDataset ForTraining() const { return {files_, kSide, kSeed}; }
  FolderDataset ForEvaluation() const { return {files_, kSide, std::nullopt}; }

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
  EXPECT_TRUE(batch.images[0].equal(
      ToTensor(TransformForEvaluation(Picture(9), kSide))));
}

TEST_F(FolderDatasetTest, TrainingImagesAreDrawnFromSeedEpochAndIndex) {
  FolderDataset dataset = ForTraining();
  const auto augmentation =
      ImageAugmentation::Draw(12, 12, KeyedRandom{kSeed, 5, 9});
  EXPECT_TRUE(dataset.Load({9}, /*epoch=*/5)
                  .images[0]
                  .equal(ToTensor(
                      TransformForTraining(Picture(9), augmentation, kSide))));
  EXPECT_FALSE(dataset.Load({9}, 5).images.equal(dataset.Load({9}, 6).images));
}

TEST_F(FolderDatasetTest, TwoRanksSeeTogetherWhatOneSees) {
  FolderDataset dataset = ForTraining();
  const auto load = [&](int rank, int world_size) {
    TrainingSampler sampler({.dataset_size = kImages,
                             .batch_size = 8 / world_size,
                             .rank = rank,
                             .world_size = world_size,
                             .seed = kSeed});
    return dataset.Load(sampler.Batch(/*epoch=*/1, /*step=*/2), /*epoch=*/1);
  };
  const Batch whole = load(0, 1);
  const Batch first = load(0, 2);
  const Batch second = load(1, 2);
  EXPECT_TRUE(whole.images.equal(torch::cat({first.images, second.images})));
  EXPECT_TRUE(whole.labels.equal(torch::cat({first.labels, second.labels})));
}

TEST_F(FolderDatasetTest, BatchesDoNotDependOnTheNumberOfWorkers) {
  FolderDataset dataset = ForTraining();
  TrainingSampler sampler(
      {.dataset_size = kImages, .batch_size = 4, .seed = kSeed});
  for (const int workers : {0, 1, 3}) {
    Prefetcher<Batch> batches = PrefetchBatches(
        dataset, sampler.Batches(/*epoch=*/2, 1, 6), /*epoch=*/2, workers);
    for (int64_t step = 1; step < 6; ++step) {
      const Batch expected = dataset.Load(sampler.Batch(2, step), 2);
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
      ThrowsMessage<InputError>(HasSubstr(files_[5].path.string())));
}

TEST_F(FolderDatasetTest, InputErrorsOfPrefetchedBatchesAreThisRanksAlone) {
  WriteFileBytes(files_[5].path, "not an image");
  FolderDataset dataset = ForTraining();
  for (const int workers : {0, 2}) {
    Prefetcher<Batch> batches =
        PrefetchBatches(dataset, {{4}, {5}}, /*epoch=*/0, workers);
    EXPECT_EQ(batches.Next().labels.item<int64_t>(), 4);
    try {
      batches.Next();
      ADD_FAILURE() << "a corrupt image was accepted";
    } catch (const InputError&) {
      ADD_FAILURE() << "an InputError is one of all ranks";
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(files_[5].path.string()));
    }
  }
}

}  // namespace
}  // namespace hvdlite::trainers
