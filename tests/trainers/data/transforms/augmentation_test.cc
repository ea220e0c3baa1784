#include "trainers/data/transforms/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::Le;

constexpr int kDraws = 2000;

ImageAugmentation Draw(uint64_t key, int64_t width = 227,
                       int64_t height = 227) {
  return ImageAugmentation::Draw(width, height, base::KeyedRandom{key});
}

// A 2x2 image: red and black above green and blue.
RgbImage FourColours() {
  return {.width = 2,
          .height = 2,
          .pixels = {255, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 255}};
}

// Changes nothing.
ImageAugmentation WholeOf(const RgbImage& image) {
  ImageAugmentation augmentation;
  augmentation.crop = {.width = image.width, .height = image.height};
  return augmentation;
}

TEST(ImageAugmentationTest, DependsOnTheKeyAlone) {
  std::set<int64_t> widths;
  for (uint64_t key = 0; key < 50; ++key) {
    EXPECT_EQ(Draw(key).crop, Draw(key).crop);
    EXPECT_EQ(Draw(key).hue, Draw(key).hue);
    widths.insert(Draw(key).crop.width);
  }
  EXPECT_GT(widths.size(), 10U);
}

TEST(ImageAugmentationTest, CropsLieInsideWithTheAreaAndProportionsAllowed) {
  for (uint64_t key = 0; key < kDraws; ++key) {
    const CropBox crop = Draw(key, 200, 160).crop;
    EXPECT_GE(crop.left, 0);
    EXPECT_GE(crop.top, 0);
    EXPECT_LE(crop.left + crop.width, 200);
    EXPECT_LE(crop.top + crop.height, 160);
    const auto width = static_cast<double>(crop.width);
    const auto height = static_cast<double>(crop.height);
    EXPECT_GT(width * height, 0.79 * 200 * 160);
    EXPECT_GT(width / height, 0.74);
    EXPECT_LT(width / height, 1.35);
  }
}

TEST(ImageAugmentationTest, ImageNetsCropsAreSmallerAndItsColoursStay) {
  double smallest = 1;
  int flips = 0;
  for (uint64_t key = 0; key < kDraws; ++key) {
    const ImageAugmentation drawn =
        ImageAugmentation::DrawCropAndFlip(200, 160, base::KeyedRandom{key});
    EXPECT_LE(drawn.crop.left + drawn.crop.width, 200);
    EXPECT_LE(drawn.crop.top + drawn.crop.height, 160);
    const double share =
        static_cast<double>(drawn.crop.width * drawn.crop.height) / (200 * 160);
    EXPECT_GT(share, 0.07);
    smallest = std::min(smallest, share);
    if (drawn.flip) ++flips;
    EXPECT_EQ(drawn.brightness, 1);
    EXPECT_EQ(drawn.hue, 0);
    EXPECT_FALSE(drawn.grey);
  }
  EXPECT_LT(smallest, 0.1);
  EXPECT_GT(flips, kDraws * 2 / 5);
  EXPECT_LT(flips, kDraws * 3 / 5);
}

TEST(ImageAugmentationTest, NoCropFitsAStripSoItsMiddleIsTaken) {
  EXPECT_EQ(Draw(1, 100, 9).crop,
            (CropBox{.left = 44, .top = 0, .width = 12, .height = 9}));
  EXPECT_EQ(Draw(1, 9, 100).crop,
            (CropBox{.left = 0, .top = 44, .width = 9, .height = 12}));
}

TEST(ImageAugmentationTest, OnePixelIsItsOwnCrop) {
  EXPECT_EQ(Draw(1, 1, 1).crop,
            (CropBox{.left = 0, .top = 0, .width = 1, .height = 1}));
}

TEST(ImageAugmentationTest, FlipsHalfAndGreysATenth) {
  int flips = 0;
  int greys = 0;
  for (uint64_t key = 0; key < kDraws; ++key) {
    flips += Draw(key).flip ? 1 : 0;
    greys += Draw(key).grey ? 1 : 0;
  }
  EXPECT_NEAR(flips, kDraws / 2, 120);
  EXPECT_NEAR(greys, kDraws / 10, 60);
}

TEST(ImageAugmentationTest, JitterFillsItsRanges) {
  std::vector<float> factors;
  std::vector<float> hues;
  for (uint64_t key = 0; key < kDraws; ++key) {
    const ImageAugmentation drawn = Draw(key);
    factors.insert(factors.end(),
                   {drawn.brightness, drawn.contrast, drawn.saturation});
    hues.push_back(drawn.hue);
  }
  EXPECT_THAT(factors, Each(AllOf(Ge(0.6F), Le(1.4F))));
  EXPECT_THAT(hues, Each(AllOf(Ge(-0.4F), Le(0.4F))));
  EXPECT_LT(*std::min_element(factors.begin(), factors.end()), 0.61F);
  EXPECT_GT(*std::max_element(factors.begin(), factors.end()), 1.39F);
  EXPECT_LT(*std::min_element(hues.begin(), hues.end()), -0.39F);
  EXPECT_GT(*std::max_element(hues.begin(), hues.end()), 0.39F);
}

TEST(ImageAugmentationTest, ColoursChangeInEveryOrder) {
  std::set<std::array<ColourChange, 4>> orders;
  for (uint64_t key = 0; key < kDraws; ++key) orders.insert(Draw(key).order);
  EXPECT_EQ(orders.size(), 24U);
}

TEST(ImageTransformsTest, EvaluationNormalisesWithImageNetsStatistics) {
  const PlanarImage planes = TransformForEvaluation(FourColours(), 2);
  EXPECT_FLOAT_EQ(planes.plane(0)[0], (1.0F - 0.485F) / 0.229F);
  EXPECT_FLOAT_EQ(planes.plane(0)[1], -0.485F / 0.229F);
  EXPECT_FLOAT_EQ(planes.plane(1)[2], (1.0F - 0.456F) / 0.224F);
  EXPECT_FLOAT_EQ(planes.plane(2)[3], (1.0F - 0.406F) / 0.225F);
}

TEST(ImageTransformsTest, EvaluationResizesTheWholeImage) {
  const RgbImage image{.width = 4,
                       .height = 1,
                       .pixels = {255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0}};
  const PlanarImage planes = TransformForEvaluation(image, 1);
  ASSERT_EQ(planes.values.size(), 3U);
  EXPECT_NEAR(planes.values[0], (0.5F - 0.485F) / 0.229F, 1e-6);
}

TEST(ImageTransformsTest, UnchangedTrainingImageIsAsInEvaluation) {
  const RgbImage image = FourColours();
  EXPECT_EQ(TransformForTraining(image, WholeOf(image), 2).values,
            TransformForEvaluation(image, 2).values);
}

TEST(ImageTransformsTest, FlipSwapsLeftAndRight) {
  const RgbImage image = FourColours();
  ImageAugmentation augmentation = WholeOf(image);
  augmentation.flip = true;
  const PlanarImage flipped = TransformForTraining(image, augmentation, 2);
  const PlanarImage plain = TransformForEvaluation(image, 2);
  for (int channel = 0; channel < 3; ++channel) {
    for (const int pixel : {0, 2}) {
      EXPECT_EQ(flipped.plane(channel)[pixel], plain.plane(channel)[pixel + 1]);
      EXPECT_EQ(flipped.plane(channel)[pixel + 1], plain.plane(channel)[pixel]);
    }
  }
}

TEST(ImageTransformsTest, CropIsTaken) {
  ImageAugmentation augmentation;
  augmentation.crop = {.left = 1, .top = 1, .width = 1, .height = 1};  // blue
  const PlanarImage planes =
      TransformForTraining(FourColours(), augmentation, 1);
  EXPECT_FLOAT_EQ(planes.values[0], -0.485F / 0.229F);
  EXPECT_FLOAT_EQ(planes.values[2], (1.0F - 0.406F) / 0.225F);
}

TEST(ImageTransformsTest, ColoursChangeInTheOrderDrawn) {
  const RgbImage image{.width = 1, .height = 1, .pixels = {204, 102, 0}};
  ImageAugmentation augmentation = WholeOf(image);
  augmentation.brightness = 2;  // clamps 0.8 to 1
  augmentation.saturation = 0;  // grey of its luminance
  const float brightness_first = 0.2989F + 0.587F * 0.8F;
  EXPECT_NEAR(TransformForTraining(image, augmentation, 1).values[0],
              (brightness_first - 0.485F) / 0.229F, 1e-5);
  std::reverse(augmentation.order.begin(), augmentation.order.end());
  const float saturation_first = 2.0F * (0.2989F * 0.8F + 0.587F * 0.4F);
  EXPECT_NEAR(TransformForTraining(image, augmentation, 1).values[0],
              (saturation_first - 0.485F) / 0.229F, 1e-5);
}

TEST(ImageTransformsTest, GreyIsTheLastChangeOfColour) {
  const RgbImage image{.width = 1, .height = 1, .pixels = {255, 0, 0}};
  ImageAugmentation augmentation = WholeOf(image);
  augmentation.grey = true;
  augmentation.hue = 1.0F / 3.0F;  // to green
  const PlanarImage planes = TransformForTraining(image, augmentation, 1);
  EXPECT_NEAR(planes.values[0], (0.587F - 0.485F) / 0.229F, 1e-5);
  EXPECT_NEAR(planes.values[2], (0.587F - 0.406F) / 0.225F, 1e-5);
}

TEST(PatternPicturesTest, DependOnEveryArgument) {
  const RgbImage picture = MakePatternPicture(0, 0, 16, 1, 0);
  EXPECT_EQ(MakePatternPicture(0, 0, 16, 1, 0), picture);
  EXPECT_NE(MakePatternPicture(1, 0, 16, 1, 0), picture);
  EXPECT_NE(MakePatternPicture(0, 1, 16, 1, 0), picture);
  EXPECT_NE(MakePatternPicture(0, 0, 16, 2, 0), picture);
  EXPECT_NE(MakePatternPicture(0, 0, 16, 1, 1), picture);
  EXPECT_EQ(MakePatternPicture(0, 0, 17, 1, 0).pixels.size(), 3U * 17 * 17);
}

}  // namespace
}  // namespace hvdlite::trainers
