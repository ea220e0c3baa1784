#include "trainers/data/transforms/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr int kDraws = 2000;

ImageAugmentation Draw(uint64_t key, int64_t width = 227,
                       int64_t height = 227) {
  return ImageAugmentation::Draw(ImageRecipe::kDomainGeneralisation, width,
                                 height, base::KeyedRandom{key});
}

ImageAugmentation DrawForImageNet(uint64_t key, int64_t width, int64_t height) {
  return ImageAugmentation::Draw(ImageRecipe::kImageNet, width, height,
                                 base::KeyedRandom{key});
}

// Returns the whole image, normalised.
PlanarImage ShowWhole(const RgbImage& image, int64_t side) {
  return TransformForEvaluation(image, ImageRecipe::kDomainGeneralisation,
                                side);
}

// A 2x2 image: red and black above green and blue.
RgbImage FourColours() {
  return {.width = 2,
          .height = 2,
          .pixels = {255, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0, 255}};
}

// An augmentation that changes nothing.
ImageAugmentation WholeOf(const RgbImage& image) {
  ImageAugmentation augmentation;
  augmentation.crop = {.width = image.width, .height = image.height};
  return augmentation;
}

TEST(ImageAugmentationTest, DependsOnlyOnTheKey) {
  std::set<int64_t> widths;
  for (uint64_t key = 0; key < 50; ++key) {
    EXPECT_EQ(Draw(key).crop, Draw(key).crop);
    EXPECT_EQ(Draw(key).hue, Draw(key).hue);
    widths.insert(Draw(key).crop.width);
  }
  EXPECT_GT(widths.size(), 10U);
}

TEST(ImageAugmentationTest, CropsAreInsideWithAllowedAreaAndProportions) {
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

TEST(ImageAugmentationTest, ImageNetsCropsAreSmallerAndKeepColours) {
  double smallest = 1;
  double largest = 0;
  double narrowest = 2;
  double widest = 0;
  int flips = 0;
  for (uint64_t key = 0; key < kDraws; ++key) {
    const ImageAugmentation drawn = DrawForImageNet(key, 400, 320);
    EXPECT_EQ(drawn.crop, DrawForImageNet(key, 400, 320).crop);
    EXPECT_GE(drawn.crop.left, 0);
    EXPECT_GE(drawn.crop.top, 0);
    EXPECT_LE(drawn.crop.left + drawn.crop.width, 400);
    EXPECT_LE(drawn.crop.top + drawn.crop.height, 320);
    const auto width = static_cast<double>(drawn.crop.width);
    const auto height = static_cast<double>(drawn.crop.height);
    smallest = std::min(smallest, width * height / (400 * 320));
    largest = std::max(largest, width * height / (400 * 320));
    narrowest = std::min(narrowest, width / height);
    widest = std::max(widest, width / height);
    if (drawn.flip) ++flips;
    EXPECT_EQ(drawn.brightness, 1);
    EXPECT_EQ(drawn.hue, 0);
    EXPECT_FALSE(drawn.grey);
  }
  EXPECT_NEAR(smallest, 0.08, 0.002);
  EXPECT_GT(largest, 0.95);
  EXPECT_NEAR(narrowest, 3.0 / 4.0, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3.0, 0.01);
  EXPECT_GT(flips, kDraws * 2 / 5);
  EXPECT_LT(flips, kDraws * 3 / 5);
}

TEST(ImageAugmentationTest, StripGetsACentreCrop) {
  EXPECT_EQ(Draw(1, 100, 9).crop,
            (CropBox{.left = 44, .top = 0, .width = 12, .height = 9}));
  EXPECT_EQ(Draw(1, 9, 100).crop,
            (CropBox{.left = 0, .top = 44, .width = 9, .height = 12}));
  EXPECT_EQ(DrawForImageNet(1, 2000, 9).crop,
            (CropBox{.left = 994, .top = 0, .width = 12, .height = 9}));
}

TEST(ImageAugmentationTest, OnePixelCropIsThePixel) {
  EXPECT_EQ(Draw(1, 1, 1).crop,
            (CropBox{.left = 0, .top = 0, .width = 1, .height = 1}));
}

TEST(ImageAugmentationTest, HalfAreFlippedAndATenthGrey) {
  int flips = 0;
  int greys = 0;
  for (uint64_t key = 0; key < kDraws; ++key) {
    flips += Draw(key).flip ? 1 : 0;
    greys += Draw(key).grey ? 1 : 0;
  }
  EXPECT_NEAR(flips, kDraws / 2, 120);
  EXPECT_NEAR(greys, kDraws / 10, 60);
}

TEST(ImageAugmentationTest, JitterCoversItsRanges) {
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
  const PlanarImage planes = ShowWhole(FourColours(), 2);
  EXPECT_FLOAT_EQ(planes.plane(0)[0], (1.0F - 0.485F) / 0.229F);
  EXPECT_FLOAT_EQ(planes.plane(0)[1], -0.485F / 0.229F);
  EXPECT_FLOAT_EQ(planes.plane(1)[2], (1.0F - 0.456F) / 0.224F);
  EXPECT_FLOAT_EQ(planes.plane(2)[3], (1.0F - 0.406F) / 0.225F);
}

// An image that is dark outside the region that evaluation uses. Inside is a
// ramp of `side` steps from left to right and from top to bottom.
RgbImage PictureWithMiddle(int64_t width, int64_t height, int64_t left,
                           int64_t top, int64_t side) {
  RgbImage image{.width = width, .height = height};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const bool inside =
          x >= left && x < left + side && y >= top && y < top + side;
      for (const int64_t value :
           {inside ? x - left + 1 : 0, inside ? y - top + 1 : 0, int64_t{0}}) {
        image.pixels.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return image;
}

float Normalised(double value) {
  return static_cast<float>((value / 255 - 0.485) / 0.229);
}

TEST(ImageTransformsTest, ImageNetsEvaluationUsesTheCentre) {
  // The shorter side already has 256 pixels, so that no pixel changes.
  struct Size {
    int64_t width, height, left, top;
  };
  for (const auto& [width, height, left, top] :
       {Size{256, 512, 16, 144}, Size{512, 256, 144, 16},
        Size{256, 256, 16, 16},
        // An odd remainder is rounded to even: 58.5 and 59.5 to 58 and 60.
        Size{256, 341, 16, 58}, Size{343, 256, 60, 16}}) {
    const PlanarImage planes =
        TransformForEvaluation(PictureWithMiddle(width, height, left, top, 224),
                               ImageRecipe::kImageNet, 224);
    ASSERT_EQ(planes.width, 224);
    ASSERT_EQ(planes.height, 224);
    for (const int64_t x : {0, 100, 223}) {
      EXPECT_NEAR(planes.plane(0)[7 * 224 + x], Normalised(x + 1), 1e-5)
          << width << "x" << height << " at " << x;
    }
    for (const int64_t y : {0, 100, 223}) {
      const double green = (static_cast<double>(y + 1) / 255 - 0.456) / 0.224;
      EXPECT_NEAR(planes.plane(1)[y * 224 + 7], green, 1e-5)
          << width << "x" << height << " at " << y;
    }
  }
}

TEST(ImageTransformsTest, ImageNetsEvaluationKeepsProportions) {
  // 300x600 pixels become 256x512; columns 16 to 239 and rows 144 to 367
  // remain.
  const RgbImage image = MakePatternPicture(0, 3, 600, 1, 0);
  RgbImage tall{.width = 300, .height = 600};
  for (int64_t y = 0; y < 600; ++y) {
    const auto row = image.pixels.begin() + 3 * 600 * y;
    tall.pixels.insert(tall.pixels.end(), row, row + 3 * 300);
  }
  const PlanarImage resized =
      CropAndResize(tall, {.width = 300, .height = 600}, 256, 512);
  const PlanarImage planes =
      TransformForEvaluation(tall, ImageRecipe::kImageNet, 224);
  for (int64_t y = 0; y < 224; ++y) {
    for (int64_t x = 0; x < 224; ++x) {
      const double expected = resized.plane(0)[(y + 144) * 256 + x + 16];
      ASSERT_NEAR(planes.plane(0)[y * 224 + x], Normalised(255 * expected),
                  1e-5)
          << x << ", " << y;
    }
  }
}

TEST(ImageTransformsTest, ImageNetsEvaluationScalesWithTheSide) {
  // 37 belongs to 32 as 256 belongs to 224.
  const PlanarImage planes = TransformForEvaluation(
      PictureWithMiddle(37, 57, 2, 12, 32), ImageRecipe::kImageNet, 32);
  EXPECT_NEAR(planes.plane(0)[0], Normalised(1), 1e-5);
  EXPECT_NEAR(planes.plane(0)[31], Normalised(32), 1e-5);
}

TEST(ImageTransformsTest, ImageNetsEvaluationUsesTheCentreOfAStrip) {
  RgbImage strip{.width = 3000, .height = 1};
  strip.pixels.assign(9000, 0);
  for (int i = 0; i < 3; ++i) strip.pixels[3 * 1500 + i] = 255;
  const PlanarImage planes =
      TransformForEvaluation(strip, ImageRecipe::kImageNet, 8);
  for (const float value : planes.values) EXPECT_TRUE(std::isfinite(value));
  EXPECT_GT(planes.plane(0)[7], Normalised(200));
  EXPECT_LT(planes.plane(0)[0], Normalised(50));
}

TEST(ImageTransformsTest, RecipesAreDescribedForReports) {
  EXPECT_EQ(DescribeEvaluation(ImageRecipe::kImageNet, 224),
            "ImageNet's recipe: shorter side resized to 256, 224x224 in the "
            "middle, normalised by the mean 0.485 0.456 0.406 and the "
            "deviation 0.229 0.224 0.225");
  EXPECT_THAT(DescribeTraining(ImageRecipe::kImageNet, 224),
              HasSubstr("ImageNet's recipe: random crop of 0.08 to 1 of the "
                        "area and 3:4 to 4:3, resized to 224x224, flipped in "
                        "half of the cases, normalised by"));
  EXPECT_THAT(DescribeTraining(ImageRecipe::kDomainGeneralisation, 64),
              AllOf(HasSubstr("random crop of 0.8 to 1 of the area"),
                    HasSubstr("jittered by 0.4")));
  EXPECT_THAT(DescribeEvaluation(ImageRecipe::kDomainGeneralisation, 64),
              HasSubstr("resized to 64x64 without keeping the proportions"));
}

TEST(ImageTransformsTest, EvaluationCanUseTheWholeImage) {
  const RgbImage image{.width = 4,
                       .height = 1,
                       .pixels = {255, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0}};
  const PlanarImage planes = ShowWhole(image, 1);
  ASSERT_EQ(planes.values.size(), 3U);
  EXPECT_NEAR(planes.values[0], (0.5F - 0.485F) / 0.229F, 1e-6);
}

TEST(ImageTransformsTest, UnchangedTrainingImageEqualsEvaluation) {
  const RgbImage image = FourColours();
  EXPECT_EQ(TransformForTraining(image, WholeOf(image), 2).values,
            ShowWhole(image, 2).values);
}

TEST(ImageTransformsTest, FlipSwapsLeftAndRight) {
  const RgbImage image = FourColours();
  ImageAugmentation augmentation = WholeOf(image);
  augmentation.flip = true;
  const PlanarImage flipped = TransformForTraining(image, augmentation, 2);
  const PlanarImage plain = ShowWhole(image, 2);
  for (int channel = 0; channel < 3; ++channel) {
    for (const int pixel : {0, 2}) {
      EXPECT_EQ(flipped.plane(channel)[pixel], plain.plane(channel)[pixel + 1]);
      EXPECT_EQ(flipped.plane(channel)[pixel + 1], plain.plane(channel)[pixel]);
    }
  }
}

TEST(ImageTransformsTest, CropIsApplied) {
  ImageAugmentation augmentation;
  augmentation.crop = {.left = 1, .top = 1, .width = 1, .height = 1};  // blue
  const PlanarImage planes =
      TransformForTraining(FourColours(), augmentation, 1);
  EXPECT_FLOAT_EQ(planes.values[0], -0.485F / 0.229F);
  EXPECT_FLOAT_EQ(planes.values[2], (1.0F - 0.406F) / 0.225F);
}

TEST(ImageTransformsTest, ColoursChangeInTheDrawnOrder) {
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
