#include "trainers/data/transforms/colour_transforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hvdlite::trainers {
namespace {

using testing::FloatNear;
using testing::Pointwise;

using Values = std::vector<float>;

// One pixel for each three values.
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
  // Luminances 0.2989 and 0.9999: the mean is 0.6494.
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

TEST(ColourTransformsTest, HueTurnsByThirdsThroughThePrimaries) {
  PlanarImage image = Pixels({0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9});
  AdjustHue(image, 1.0F / 3.0F);
  ExpectPixels(image, {0.1, 0.9, 0.1, 0.1, 0.1, 0.9, 0.9, 0.1, 0.1});
  AdjustHue(image, -1.0F / 3.0F);
  ExpectPixels(image, {0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.9});
}

TEST(ColourTransformsTest, HueOfAMixtureTurnsWithItsProportions) {
  // Orange, at 30 degrees; by -60 degrees it becomes rose, at 330.
  PlanarImage image = Pixels({0.8, 0.5, 0.2});
  AdjustHue(image, -1.0F / 6.0F);
  ExpectPixels(image, {0.8, 0.2, 0.5});
}

TEST(ColourTransformsTest, WithoutATurnTheHueOfAnyColourStays) {
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
