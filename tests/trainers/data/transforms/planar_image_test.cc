#include "trainers/data/transforms/planar_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hvdlite::trainers {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// Grey pixels with these values.
RgbImage GreyImage(int64_t width, int64_t height,
                   const std::vector<uint8_t>& values) {
  RgbImage image{.width = width, .height = height};
  for (const uint8_t value : values) {
    image.pixels.insert(image.pixels.end(), 3, value);
  }
  return image;
}

// The red plane of the resized crop, with values from 0 to 255.
std::vector<float> Resize(const RgbImage& image, const CropBox& crop,
                          int64_t width, int64_t height) {
  const PlanarImage planes = CropAndResize(image, crop, width, height);
  EXPECT_EQ(planes.width, width);
  EXPECT_EQ(planes.height, height);
  std::vector<float> values(planes.plane(0),
                            planes.plane(0) + planes.plane_size());
  for (float& value : values) value *= 255.0F;
  return values;
}

auto IsNear(const std::vector<float>& values) {
  return Pointwise(FloatNear(1e-3F), values);
}

TEST(ImageResizeTest, SameSizeIsACopy) {
  EXPECT_THAT(Resize(GreyImage(2, 2, {1, 20, 30, 255}),
                     {.width = 2, .height = 2}, 2, 2),
              IsNear({1, 20, 30, 255}));
}

TEST(ImageResizeTest, ChannelsAreIndependent) {
  const RgbImage image{.width = 1, .height = 1, .pixels = {51, 102, 255}};
  const PlanarImage planes =
      CropAndResize(image, {.width = 1, .height = 1}, 2, 1);
  EXPECT_THAT(planes.values, IsNear({0.2, 0.2, 0.4, 0.4, 1, 1}));
}

// The centres of the four outputs are at 0.25, 0.75, 1.25 and 1.75 of two
// inputs with centres at 0.5 and 1.5.
TEST(ImageResizeTest, EnlargesBilinearly) {
  const std::vector<float> expected = {0, 25, 75, 100};
  EXPECT_THAT(
      Resize(GreyImage(2, 1, {0, 100}), {.width = 2, .height = 1}, 4, 1),
      IsNear(expected));
  EXPECT_THAT(
      Resize(GreyImage(1, 2, {0, 100}), {.width = 1, .height = 2}, 1, 4),
      IsNear(expected));
}

// The triangle of radius 2 around 1 gives the pixels 0, 1 and 2 of four the
// weights 0.75, 0.75 and 0.25, which are divided by their sum.
TEST(ImageResizeTest, ShrinksWithAWiderFilter) {
  const std::vector<float> expected = {75.0F / 1.75F, 0.25F * 100 / 1.75F};
  EXPECT_THAT(
      Resize(GreyImage(4, 1, {100, 0, 0, 0}), {.width = 4, .height = 1}, 2, 1),
      IsNear({expected[0], 0}));
  EXPECT_THAT(
      Resize(GreyImage(4, 1, {0, 0, 100, 0}), {.width = 4, .height = 1}, 2, 1),
      IsNear({expected[1], expected[0]}));
  EXPECT_THAT(
      Resize(GreyImage(1, 4, {0, 0, 100, 0}), {.width = 1, .height = 4}, 1, 2),
      IsNear({expected[1], expected[0]}));
}

TEST(ImageResizeTest, PixelsOutsideTheCropHaveNoInfluence) {
  const RgbImage image = GreyImage(4, 3,
                                   {255, 255, 255, 255,  //
                                    255, 10, 30, 255,    //
                                    255, 255, 255, 255});
  EXPECT_THAT(
      Resize(image, {.left = 1, .top = 1, .width = 2, .height = 1}, 1, 2),
      IsNear({20, 20}));
}

using Values = std::vector<float>;

// Returns one pixel for each three values.
PlanarImage Pixels(const Values& values) {
  PlanarImage image(static_cast<int64_t>(values.size()) / 3, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    image.plane(static_cast<int>(i % 3))[i / 3] = values[i];
  }
  return image;
}

void ExpectPixels(PlanarImage image, const Values& expected) {
  EXPECT_THAT(image.values,
              Pointwise(FloatNear(1e-5F), Pixels(expected).values));
}

TEST(ColourTransformsTest, BrightnessMultipliesAndClamps) {
  PlanarImage image = Pixels({0.2, 0.5, 0.9});
  AdjustBrightness(image, 1.4);
  ExpectPixels(image, {0.28, 0.7, 1.0});
}

TEST(ColourTransformsTest, ContrastIsAroundTheMeanLuminance) {
  // The luminances are 0.2989 and 0.9999, so the mean is 0.6494.
  PlanarImage image = Pixels({1, 0, 0, 1, 1, 1});
  AdjustContrast(image, 0.5);
  ExpectPixels(image, {0.8247, 0.3247, 0.3247, 0.8247, 0.8247, 0.8247});
}

TEST(ColourTransformsTest, MoreContrastIsClamped) {
  PlanarImage image = Pixels({1, 0, 0, 1, 1, 1});
  AdjustContrast(image, 1.4);
  ExpectPixels(image, {1, 0, 0, 1, 1, 1});
}

TEST(ColourTransformsTest, SaturationIsAroundThePixelsLuminance) {
  // 0.2989 * 0.5 + 0.587 * 0.2 + 0.114 * 0.1 = 0.27825
  PlanarImage image = Pixels({0.5, 0.2, 0.1});
  AdjustSaturation(image, 0.6);
  ExpectPixels(image, {0.4113, 0.2313, 0.1713});
}

TEST(ColourTransformsTest, MoreSaturationIsClamped) {
  PlanarImage image = Pixels({1, 0, 0.5});
  AdjustSaturation(image, 1.4);
  ExpectPixels(image, {1, 0, 0.55764});
}

TEST(ColourTransformsTest, ThirdOfATurnChangesPrimaryColours) {
  PlanarImage image = Pixels({0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9});
  AdjustHue(image, 1.0F / 3.0F);
  ExpectPixels(image, {0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.9, 0.1, 0.1});
  AdjustHue(image, -1.0F / 3.0F);
  ExpectPixels(image, {0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9});
}

TEST(ColourTransformsTest, HueOfMixedColourIsTurned) {
  // Orange is at 30 degrees; a turn by -60 degrees gives rose at 330.
  PlanarImage image = Pixels({0.8, 0.5, 0.2});
  AdjustHue(image, -1.0F / 6.0F);
  ExpectPixels(image, {0.8, 0.2, 0.5});
}

TEST(ColourTransformsTest, ZeroTurnKeepsAllColours) {
  const Values colours = {0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.2, 0.3, 0.1,
                          0.9, 0.9, 0.2, 0.2, 0.9, 0.9, 0.9, 0.2, 0.9};
  PlanarImage image = Pixels(colours);
  AdjustHue(image, 0);
  ExpectPixels(image, colours);
}

TEST(ColourTransformsTest, GreyHasNoHue) {
  PlanarImage image = Pixels({0.4, 0.4, 0.4, 0, 0, 0});
  AdjustHue(image, 0.3);
  ExpectPixels(image, {0.4, 0.4, 0.4, 0, 0, 0});
}

TEST(ColourTransformsTest, GreyIsTheLuminance) {
  PlanarImage image = Pixels({1, 0, 0, 0, 1, 0, 0, 0, 1});
  ConvertToGrey(image);
  ExpectPixels(image, {0.2989, 0.2989, 0.2989, 0.587, 0.587, 0.587, 0.114,
                       0.114, 0.114});
}

}  // namespace
}  // namespace hvdlite::trainers
