#include "trainers/data/formats/image_file.h"

// jpeglib.h needs declarations of stdio.h.
// clang-format off
#include <stdio.h>
#include <jpeglib.h>
// clang-format on

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "support/input_error.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Bytes = std::vector<uint8_t>;

RgbImage Picture(int64_t side) {
  return MakePatternPicture(/*domain=*/1, /*label=*/0, side, /*seed=*/1, 0);
}

Bytes JpegBytes() { return EncodeJpeg(Picture(64), /*quality=*/95); }

struct FlatJpeg {
  std::vector<JSAMPLE> pixel;  // one sample for each component
  J_COLOR_SPACE colours = JCS_GRAYSCALE;
  J_COLOR_SPACE stored_as = JCS_GRAYSCALE;
  bool adobe_marker = false;
};

// An 8x8 JPEG of one colour.
Bytes Encode(const FlatJpeg& flat) {
  jpeg_error_mgr errors;
  jpeg_compress_struct jpeg;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* data = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&jpeg, &data, &size);
  jpeg.image_width = 8;
  jpeg.image_height = 8;
  jpeg.input_components = static_cast<int>(flat.pixel.size());
  jpeg.in_color_space = flat.colours;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, flat.stored_as);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg.write_Adobe_marker = flat.adobe_marker ? TRUE : FALSE;
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> row;
  for (int i = 0; i < 8; ++i) {
    row.insert(row.end(), flat.pixel.begin(), flat.pixel.end());
  }
  JSAMPROW rows[1] = {row.data()};
  while (jpeg.next_scanline < 8) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes(data, data + size);
  free(data);
  return bytes;
}

auto RefusesJpegWith(const ::testing::Matcher<std::string>& message) {
  return ThrowsMessage<support::InputError>(
      AllOf(HasSubstr("'a.jpg'"), message));
}

TEST(JpegTest, ReadsBackAlmostWhatItWrote) {
  const RgbImage picture = Picture(61);
  const RgbImage read = DecodeJpeg(EncodeJpeg(picture, 100), "a.jpg");
  ASSERT_EQ(read.width, 61);
  ASSERT_EQ(read.height, 61);
  ASSERT_EQ(read.pixels.size(), picture.pixels.size());
  double error = 0;
  for (size_t i = 0; i < read.pixels.size(); ++i) {
    error += std::abs(double{1} * read.pixels[i] - picture.pixels[i]);
  }
  EXPECT_LT(error / static_cast<double>(read.pixels.size()), 15);
}

TEST(JpegTest, PixelsAreRowsOfRedGreenAndBlue) {
  RgbImage image{.width = 32, .height = 16};
  for (int64_t i = 0; i < image.width * image.height; ++i) {
    const bool top = i < image.width * image.height / 2;
    for (const int value : {250, top ? 30 : 130, 60}) {
      image.pixels.push_back(static_cast<uint8_t>(value));
    }
  }
  const RgbImage read = DecodeJpeg(EncodeJpeg(image, 100), "a.jpg");
  ASSERT_EQ(read.width, 32);
  ASSERT_EQ(read.height, 16);
  EXPECT_NEAR(read.pixels[0], 250, 6);
  EXPECT_NEAR(read.pixels[1], 30, 6);
  EXPECT_NEAR(read.pixels[2], 60, 6);
  EXPECT_NEAR(read.pixels[read.pixels.size() - 2], 130, 6);
}

TEST(JpegTest, BytesDependOnlyOnTheImage) {
  EXPECT_EQ(JpegBytes(), JpegBytes());
}

TEST(JpegTest, GreyBecomesRedGreenAndBlue) {
  const RgbImage read = DecodeJpeg(Encode({.pixel = {100}}), "a.jpg");
  EXPECT_EQ(read.pixels.size(), 3U * 8 * 8);
  EXPECT_THAT(read.pixels, Each(100));
}

// Expects that every pixel of `jpeg` has almost this colour.
void ExpectColour(const Bytes& jpeg, int red, int green, int blue) {
  const RgbImage read = DecodeJpeg(jpeg, "a.jpg");
  ASSERT_EQ(read.pixels.size(), 3U * 8 * 8);
  for (size_t i = 0; i < read.pixels.size(); i += 3) {
    EXPECT_NEAR(read.pixels[i], red, 2) << i;
    EXPECT_NEAR(read.pixels[i + 1], green, 2) << i;
    EXPECT_NEAR(read.pixels[i + 2], blue, 2) << i;
  }
}

TEST(JpegTest, FourInksAreInverted) {
  for (const J_COLOR_SPACE stored_as : {JCS_CMYK, JCS_YCCK}) {
    ExpectColour(Encode({.pixel = {200, 100, 50, 255},
                         .colours = JCS_CMYK,
                         .stored_as = stored_as,
                         .adobe_marker = true}),
                 200, 100, 50);
    ExpectColour(Encode({.pixel = {200, 100, 50, 128},
                         .colours = JCS_CMYK,
                         .stored_as = stored_as,
                         .adobe_marker = true}),
                 100, 50, 25);
  }
}

// As in torchvision.
TEST(JpegTest, FourInksWithoutAdobesMarkerAreInverted) {
  ExpectColour(Encode({.pixel = {200, 100, 50, 255},
                       .colours = JCS_CMYK,
                       .stored_as = JCS_CMYK}),
               200, 100, 50);
  ExpectColour(Encode({.pixel = {255, 255, 255, 0},
                       .colours = JCS_CMYK,
                       .stored_as = JCS_CMYK}),
               0, 0, 0);
}

TEST(JpegTest, TruncatedInksAreAnError) {
  Bytes bytes = Encode({.pixel = {200, 100, 50, 255},
                        .colours = JCS_CMYK,
                        .stored_as = JCS_YCCK,
                        .adobe_marker = true});
  bytes.resize(bytes.size() - 6);
  EXPECT_THAT([&] { DecodeJpeg(bytes, "a.jpg"); },
              RefusesJpegWith(HasSubstr("Premature end of JPEG file")));
}

TEST(JpegTest, TwoComponentsAreAnError) {
  EXPECT_THAT(
      [] {
        DecodeJpeg(Encode({.pixel = {1, 2},
                           .colours = JCS_UNKNOWN,
                           .stored_as = JCS_UNKNOWN}),
                   "a.jpg");
      },
      RefusesJpegWith(
          HasSubstr("2 colour components; expected 1 (grey), 3 or 4")));
}

TEST(JpegTest, ImageThatCannotBeEncodedIsAnError) {
  EXPECT_THROW(EncodeJpeg({.width = 0, .height = 8}, 95), std::runtime_error);
}

}  // namespace
}  // namespace hvdlite::trainers
