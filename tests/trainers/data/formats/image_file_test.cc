#include "trainers/data/formats/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <string>

#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tools/support/input_error.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Bytes = std::vector<uint8_t>;

// A PNG, one pixel high, of samples in a format of libpng's.
template <typename Sample>
Bytes EncodeRow(int width, png_uint_32 format, const std::vector<Sample>& row,
                const Bytes& palette = {}) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = 1;
  image.format = format;
  image.colormap_entries = static_cast<png_uint_32>(palette.size() / 3);
  Bytes bytes(1000);
  png_alloc_size_t size = bytes.size();
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0,
                                      row.data(), 0, palette.data()),
            0)
      << image.message;
  bytes.resize(size);
  return bytes;
}

Bytes PictureBytes() {
  return EncodePng(MakePatternPicture(/*domain=*/0, /*label=*/3, /*side=*/32,
                                      /*seed=*/1, 0));
}

auto RefusesWith(const testing::Matcher<std::string>& message) {
  return ThrowsMessage<support::InputError>(
      AllOf(HasSubstr("'a.png'"), message));
}

TEST(PngTest, ReadsBackWhatItWrote) {
  RgbImage image{.width = 3, .height = 2};
  for (int i = 0; i < 18; ++i) image.pixels.push_back(i * 14);
  EXPECT_EQ(DecodePng(EncodePng(image), "a.png"), image);
}

TEST(PngTest, GreyBecomesRedGreenAndBlue) {
  const Bytes bytes = EncodeRow<uint8_t>(2, PNG_FORMAT_GRAY, {7, 200});
  EXPECT_THAT(DecodePng(bytes, "a.png").pixels,
              ElementsAre(7, 7, 7, 200, 200, 200));
}

TEST(PngTest, PaletteIsLookedUp) {
  const Bytes bytes = EncodeRow<uint8_t>(3, PNG_FORMAT_RGB_COLORMAP, {1, 0, 1},
                                         {10, 20, 30, 40, 50, 60});
  EXPECT_THAT(DecodePng(bytes, "a.png").pixels,
              ElementsAre(40, 50, 60, 10, 20, 30, 40, 50, 60));
}

TEST(PngTest, TransparentPixelsShowWhite) {
  const Bytes bytes =
      EncodeRow<uint8_t>(2, PNG_FORMAT_RGBA, {10, 20, 30, 255, 10, 20, 30, 0});
  EXPECT_THAT(DecodePng(bytes, "a.png").pixels,
              ElementsAre(10, 20, 30, 255, 255, 255));
}

TEST(PngTest, SixteenBitsBecomeEight) {
  const Bytes bytes = EncodeRow<uint16_t>(2, PNG_FORMAT_LINEAR_Y, {0, 65535});
  EXPECT_THAT(DecodePng(bytes, "a.png").pixels,
              ElementsAre(0, 0, 0, 255, 255, 255));
}

TEST(PngTest, EveryTruncationOfHeaderAndPixelsIsRefused) {
  const Bytes whole = PictureBytes();
  constexpr size_t kEndChunkBytes = 12;
  for (size_t size = 8; size + kEndChunkBytes + 8 < whole.size(); size += 7) {
    const Bytes part(whole.begin(), whole.begin() + size);
    EXPECT_THROW(DecodePng(part, "a.png"), support::InputError) << size;
  }
}

TEST(PngTest, TruncatedFileIsRefusedNamingItsSize) {
  Bytes bytes = PictureBytes();
  bytes.resize(500);
  EXPECT_THAT([&] { DecodePng(bytes, "a.png"); },
              RefusesWith(HasSubstr("of 500 bytes: ")));
}

TEST(PngTest, CorruptPixelsAreRefused) {
  Bytes bytes = PictureBytes();
  bytes[bytes.size() / 2] ^= 0x10;
  EXPECT_THAT([&] { DecodePng(bytes, "a.png"); },
              RefusesWith(HasSubstr("bytes: ")));
}

TEST(PngTest, HugeImageIsRefusedBeforeItIsDecoded) {
  Bytes bytes = PictureBytes();
  constexpr size_t kHeader = 12;  // where IHDR's type is, then its 13 bytes
  for (const size_t side : {kHeader + 4, kHeader + 8}) {
    bytes[side + 2] = 0x7f;  // 127 * 256 + 32 pixels
  }
  const uLong checksum = crc32(0, &bytes[kHeader], 4 + 13);
  for (int i = 0; i < 4; ++i) {
    bytes[kHeader + 4 + 13 + i] =
        static_cast<uint8_t>(checksum >> (24 - 8 * i));
  }
  EXPECT_THAT([&] { DecodePng(bytes, "a.png"); },
              RefusesWith(AllOf(HasSubstr("32544x32544 pixels"),
                                HasSubstr("at most 67108864"))));
}

TEST(PngTest, ImageThatCannotBeEncodedIsAnError) {
  EXPECT_THROW(EncodePng({.width = 0, .height = 8}), std::runtime_error);
}

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
  EXPECT_THAT([] { ReadImageFile("/nonexistent/a.jpg"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("'/nonexistent/a.jpg'"),
                        HasSubstr("No such file or directory"))));
}

TEST(ImageFileTest, EmptyFileIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "");
  EXPECT_THAT([&] { ReadImageFile(directory / "a.jpg"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("a.jpg'"), HasSubstr("0 bytes"))));
}

TEST(ImageFileTest, FileThatIsNoImageIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  WriteFileBytes(directory / "a.jpg", "<html>not found</html>");
  EXPECT_THAT([&] { ReadImageFile(directory / "a.jpg"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("a.jpg' is no image"), HasSubstr("22 bytes"),
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
                ThrowsMessage<support::InputError>(HasSubstr(file.string())));
  }
}

TEST(ImageFileTest, UnwritableFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(
      [] {
        WriteImageFile("/nonexistent/a.jpg", Picture(), ImageFormat::kJpeg);
      },
      ThrowsMessage<support::InputError>(HasSubstr("/nonexistent/a.jpg")));
}

}  // namespace
}  // namespace hvdlite::trainers
