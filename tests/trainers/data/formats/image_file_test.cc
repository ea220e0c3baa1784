#include "trainers/data/formats/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"
#include "trainers/data/sets/pattern_pictures.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

RgbImage Picture() {
  return MakePatternPicture(/*domain=*/1, /*label=*/2, /*side=*/16, /*seed=*/1,
                            0);
}

TEST(ImageFileTest, ContentSaysTheFormatAndNotTheName) {
  const TemporaryDirectory directory;
  WriteImageFile(directory / "a.jpg", Picture(), ImageFormat::kPng);
  WriteImageFile(directory / "b.png", Picture(), ImageFormat::kJpeg);
  EXPECT_EQ(ReadImageFile(directory / "a.jpg"), Picture());
  EXPECT_EQ(ReadImageFile(directory / "b.png").width, 16);
}

TEST(ImageFileTest, MissingFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(
      [] { ReadImageFile("/nonexistent/a.jpg"); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("'/nonexistent/a.jpg'"),
                                      HasSubstr("No such file or directory"))));
}

TEST(ImageFileTest, EmptyFileIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "");
  EXPECT_THAT([&] { ReadImageFile(directory / "a.jpg"); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("a.jpg'"), HasSubstr("0 bytes"))));
}

TEST(ImageFileTest, FileThatIsNoImageIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "<html>not found</html>");
  EXPECT_THAT([&] { ReadImageFile(directory / "a.jpg"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("a.jpg' is no image"),
                                              HasSubstr("22 bytes"),
                                              HasSubstr("a JPEG or PNG"))));
}

TEST(ImageFileTest, TruncatedFilesAreErrorsThatNameThem) {
  const TemporaryDirectory directory;
  for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kPng}) {
    const auto file = directory / "a.image";
    WriteImageFile(file, Picture(), format);
    const std::string whole = FileBytes(file);
    WriteFileBytes(file, whole.substr(0, whole.size() / 2));
    EXPECT_THAT([&] { ReadImageFile(file); },
                ThrowsMessage<InputError>(HasSubstr(file.string())));
  }
}

TEST(ImageFileTest, UnwritableFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(
      [] {
        WriteImageFile("/nonexistent/a.jpg", Picture(), ImageFormat::kJpeg);
      },
      ThrowsMessage<InputError>(HasSubstr("/nonexistent/a.jpg")));
}

}  // namespace
}  // namespace hvdlite::trainers
