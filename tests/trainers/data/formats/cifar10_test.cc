#include "trainers/data/formats/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void WriteBytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// A record whose pixels are consecutive numbers from `first_pixel` on.
std::string Record(char label, uint8_t first_pixel) {
  std::string record(1, label);
  for (int64_t i = 0; i < kImageBytes; ++i) {
    record.push_back(static_cast<char>(first_pixel + i));
  }
  return record;
}

TEST(Cifar10Test, ReadsLabelsAndPixelsOfAllTrainingFilesInOrder) {
  const TemporaryDirectory directory;
  WriteBytes(directory / "data_batch_2.bin", Record(3, 30));
  WriteBytes(directory / "data_batch_1.bin", Record(1, 10) + Record(2, 20));
  WriteBytes(directory / "test_batch.bin", Record(9, 90));
  WriteBytes(directory / "batches.meta.txt", "airplane\n");

  const ImageSet train = ReadCifar10(directory.path(), Cifar10Split::kTrain);
  EXPECT_THAT(train.labels, ElementsAre(1, 2, 3));
  ASSERT_EQ(train.pixels.size(), 3U * kImageBytes);
  EXPECT_EQ(train.image(0)[0], 10);
  EXPECT_EQ(train.image(1)[0], 20);
  EXPECT_EQ(train.image(2)[0], 30);
  EXPECT_EQ(train.image(2)[kImageBytes - 1],
            static_cast<uint8_t>(30 + kImageBytes - 1));

  const ImageSet test = ReadCifar10(directory.path(), Cifar10Split::kTest);
  EXPECT_THAT(test.labels, ElementsAre(9));

  std::filesystem::remove(directory / "test_batch.bin");
  EXPECT_THAT([&] { ReadCifar10(directory.path(), Cifar10Split::kTest); },
              ThrowsMessage<support::InputError>(HasSubstr("test_batch.bin")));
}

TEST(Cifar10Test, FindsTheArchivesDirectory) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "cifar-10-batches-bin");
  WriteBytes(directory / "cifar-10-batches-bin/test_batch.bin", Record(4, 0));
  EXPECT_EQ(ReadCifar10(directory.path(), Cifar10Split::kTest).size(), 1);
}

TEST(Cifar10Test, ReadsBackWhatItWrites) {
  const TemporaryDirectory directory;
  const ImageSet images = MakePatternImages(20, /*seed=*/7);
  WriteCifar10File(directory / "data_batch_1.bin", images, 0, 13);
  WriteCifar10File(directory / "data_batch_2.bin", images, 13, 20);
  const ImageSet read = ReadCifar10(directory.path(), Cifar10Split::kTrain);
  EXPECT_EQ(read.labels, images.labels);
  EXPECT_EQ(read.pixels, images.pixels);
}

TEST(PatternImagesTest, ClassesAreEquallyFrequentAndSeedsDiffer) {
  const ImageSet images = MakePatternImages(100, /*seed=*/1);
  for (int label = 0; label < kCifar10Classes; ++label) {
    EXPECT_EQ(std::count(images.labels.begin(), images.labels.end(), label),
              10);
  }
  EXPECT_EQ(images.pixels, MakePatternImages(100, /*seed=*/1).pixels);
  EXPECT_NE(images.pixels, MakePatternImages(100, /*seed=*/2).pixels);
}

}  // namespace
}  // namespace hvdlite::trainers
