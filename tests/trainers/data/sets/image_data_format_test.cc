#include "trainers/data/sets/image_data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ImageDataFormatTest, Cifar10IsKnownByAnyOfItsFiles) {
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    const TemporaryDirectory directory;
    std::filesystem::create_directory(directory / "other");
    WriteFileBytes(directory / name, "");
    EXPECT_EQ(DetectImageDataFormat(directory.path()),
              ImageDataFormat::kCifar10);
  }
}

TEST(ImageDataFormatTest, Cifar10IsKnownByTheArchivesFolder) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "cifar-10-batches-bin");
  EXPECT_EQ(DetectImageDataFormat(directory.path()), ImageDataFormat::kCifar10);
}

TEST(ImageDataFormatTest, OtherFoldersAreThoseOfImages) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "photo");
  WriteFileBytes(directory / "README", "");
  EXPECT_EQ(DetectImageDataFormat(directory.path()), ImageDataFormat::kFolder);
}

TEST(ImageDataFormatTest, DirectoryWithNeitherIsAnErrorThatNamesBoth) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "");
  EXPECT_THAT([&] { DetectImageDataFormat(directory.path()); },
              ThrowsMessage<InputError>(AllOf(
                  HasSubstr(directory.path().string()),
                  HasSubstr("data_batch_*.bin"), HasSubstr("DOMAIN/CLASS"))));
}

TEST(ImageDataFormatTest, MissingDirectoryIsAnError) {
  EXPECT_THAT(
      [] { DetectImageDataFormat("/nonexistent/data"); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("/nonexistent/data"),
                                      HasSubstr("No such file or directory"))));
}

}  // namespace
}  // namespace hvdlite::trainers
