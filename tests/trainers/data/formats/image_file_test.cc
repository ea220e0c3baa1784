#include "trainers/data/formats/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Bytes = std::vector<uint8_t>;

// A PNG of one row, with samples in a format of libpng.
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

struct PngOf {
  int colour_type = PNG_COLOR_TYPE_GRAY;
  int bit_depth = 8;
  int width = 1;
  std::vector<Bytes> rows;
  int interlace = PNG_INTERLACE_NONE;
  Bytes transparencies = {};  // for the colours of the palette
};

// Writes PNGs that libpng's simplified interface cannot write: without gAMA and
// sRGB, with samples of any size, interlaced.
Bytes Encode(PngOf png) {
  png_structp file =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(file);
  Bytes bytes;
  png_set_write_fn(
      file, &bytes,
      [](png_structp of, png_bytep data, png_size_t size) {
        auto* written = static_cast<Bytes*>(png_get_io_ptr(of));
        written->insert(written->end(), data, data + size);
      },
      nullptr);
  png_set_IHDR(file, info, static_cast<png_uint_32>(png.width),
               static_cast<png_uint_32>(png.rows.size()), png.bit_depth,
               png.colour_type, png.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{10, 20, 30}, {40, 50, 60}};
  if (png.colour_type == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(file, info, palette, 2);
  }
  if (!png.transparencies.empty()) {
    png_set_tRNS(file, info, png.transparencies.data(),
                 static_cast<int>(png.transparencies.size()), nullptr);
  }
  std::vector<png_bytep> rows;
  for (Bytes& row : png.rows) rows.push_back(row.data());
  png_set_rows(file, info, rows.data());
  png_write_png(file, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&file, &info);
  return bytes;
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

TEST(PngTest, TransparentPixelsBecomeWhite) {
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

TEST(PngTest, SixteenBitsAreSrgbUnlessTheFileSaysOtherwise) {
  const Bytes row = {0, 0, 16, 16, 32, 32, 64, 64};
  EXPECT_THAT(
      DecodePng(Encode({.bit_depth = 16, .width = 4, .rows = {row}}), "a.png")
          .pixels,
      ElementsAre(0, 0, 0, 16, 16, 16, 32, 32, 32, 64, 64, 64));
  EXPECT_THAT(DecodePng(Encode({.colour_type = PNG_COLOR_TYPE_RGB,
                                .bit_depth = 16,
                                .rows = {{16, 16, 32, 32, 64, 64}}}),
                        "a.png")
                  .pixels,
              ElementsAre(16, 32, 64));
  EXPECT_THAT(DecodePng(Encode({.colour_type = PNG_COLOR_TYPE_GRAY_ALPHA,
                                .bit_depth = 16,
                                .width = 2,
                                .rows = {{32, 32, 255, 255, 32, 32, 0, 0}}}),
                        "a.png")
                  .pixels,
              ElementsAre(32, 32, 32, 255, 255, 255));
}

TEST(PngTest, SamplesMayBeSmallerThanAByte) {
  EXPECT_THAT(
      DecodePng(Encode({.bit_depth = 1, .width = 3, .rows = {{0b10100000}}}),
                "a.png")
          .pixels,
      ElementsAre(255, 255, 255, 0, 0, 0, 255, 255, 255));
  EXPECT_THAT(
      DecodePng(Encode({.bit_depth = 4, .width = 2, .rows = {{0x3f}}}), "a.png")
          .pixels,
      ElementsAre(51, 51, 51, 255, 255, 255));
}

TEST(PngTest, ColoursOfAPaletteMayBeTransparent) {
  EXPECT_THAT(DecodePng(Encode({.colour_type = PNG_COLOR_TYPE_PALETTE,
                                .bit_depth = 1,
                                .width = 2,
                                .rows = {{0b01000000}},
                                .transparencies = {255, 0}}),
                        "a.png")
                  .pixels,
              ElementsAre(10, 20, 30, 255, 255, 255));
}

TEST(PngTest, InterlacedImageIsReadAsOthers) {
  std::vector<Bytes> rows(9, Bytes(9));
  for (uint8_t y = 0; y < 9; ++y) {
    for (uint8_t x = 0; x < 9; ++x) rows[y][x] = 9 * y + x;
  }
  const RgbImage read = DecodePng(
      Encode({.width = 9, .rows = rows, .interlace = PNG_INTERLACE_ADAM7}),
      "a.png");
  EXPECT_EQ(read, DecodePng(Encode({.width = 9, .rows = rows}), "a.png"));
  EXPECT_EQ(read.pixels[3 * 80], 80);
}

TEST(PngTest, ImageThatCannotBeEncodedIsAnError) {
  EXPECT_THROW(EncodePng({.width = 0, .height = 8}), std::runtime_error);
}

RgbImage Picture() {
  return MakePatternPicture(/*domain=*/1, /*label=*/2, /*side=*/16, /*seed=*/1,
                            0);
}

TEST(ImageFileTest, ContentDecidesTheFormat) {
  const TemporaryDirectory directory;
  WriteImageFile(directory / "a.jpg", Picture(), ImageFormat::kPng);
  WriteImageFile(directory / "b.png", Picture(), ImageFormat::kJpeg);
  EXPECT_EQ(ReadImageFile(directory / "a.jpg"), Picture());
  EXPECT_EQ(ReadImageFile(directory / "b.png").width, 16);
}

TEST(ImageFileTest, NonRegularFileIsAnErrorThatNamesIt) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "directory.jpg");
  std::filesystem::create_symlink("/nonexistent", directory / "link.jpg");
  // The pipe has no writer.
  ASSERT_EQ(mkfifo((directory / "pipe.jpg").c_str(), 0600), 0);
  for (const char* name : {"directory.jpg", "link.jpg", "pipe.jpg"}) {
    EXPECT_THAT([&] { ReadImageFile(directory / name); },
                ThrowsMessage<support::InputError>(
                    HasSubstr("cannot read '" + (directory / name).string())));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
