#include "trainers/data/transforms/image_resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hvdlite::trainers {
namespace {

using testing::FloatNear;
using testing::Pointwise;

// Grey pixels of these values.
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

TEST(ImageResizeTest, ChannelsStayApart) {
  const RgbImage image{.width = 1, .height = 1, .pixels = {51, 102, 255}};
  const PlanarImage planes =
      CropAndResize(image, {.width = 1, .height = 1}, 2, 1);
  EXPECT_THAT(planes.values, IsNear({0.2, 0.2, 0.4, 0.4, 1, 1}));
}

// Centres of the four outputs lie at 0.25, 0.75, 1.25 and 1.75 of two inputs
// whose centres are at 0.5 and 1.5.
TEST(ImageResizeTest, EnlargesBilinearly) {
  const std::vector<float> expected = {0, 25, 75, 100};
  EXPECT_THAT(
      Resize(GreyImage(2, 1, {0, 100}), {.width = 2, .height = 1}, 4, 1),
      IsNear(expected));
  EXPECT_THAT(
      Resize(GreyImage(1, 2, {0, 100}), {.width = 1, .height = 2}, 1, 4),
      IsNear(expected));
}

// The triangle of radius 2 around 1 weighs the pixels 0, 1, 2 of four with
// 0.75, 0.75 and 0.25, which are divided by their sum.
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

TEST(ImageResizeTest, PixelsOutsideOfTheCropHaveNoInfluence) {
  const RgbImage image = GreyImage(4, 3,
                                   {255, 255, 255, 255,  //
                                    255, 10, 30, 255,    //
                                    255, 255, 255, 255});
  EXPECT_THAT(
      Resize(image, {.left = 1, .top = 1, .width = 2, .height = 1}, 1, 2),
      IsNear({20, 20}));
}

}  // namespace
}  // namespace hvdlite::trainers
