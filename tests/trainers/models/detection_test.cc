// Tests of the single-shot detector.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainers/models/detection_network.h"

namespace hvdlite::trainers {
namespace {

TEST(SsdDefaultBoxesTest, FollowCellsInTheOrderOfTheFeatureMaps) {
  const torch::Tensor boxes = SsdDefaultBoxes();
  ASSERT_EQ(boxes.sizes(), (std::vector<int64_t>{4, kSsdDefaultBoxes}));
  const auto expect = [&](int64_t index, std::vector<double> pixels) {
    const torch::Tensor expected =
        torch::tensor(pixels).to(torch::kFloat32) / 300;
    EXPECT_TRUE(torch::allclose(boxes.select(1, index), expected, 1e-5, 1e-5))
        << index << boxes.select(1, index) * 300;
  };
  expect(0, {4, 4, 21, 21});
  expect(1, {12, 4, 21, 21});  // rows first
  expect(38, {4, 12, 21, 21});
  const double large = std::sqrt(21.0 * 45.0);
  expect(38 * 38, {4, 4, large, large});
  expect(2 * 38 * 38, {4, 4, 21 * std::sqrt(2.0), 21 / std::sqrt(2.0)});
  expect(3 * 38 * 38, {4, 4, 21 / std::sqrt(2.0), 21 * std::sqrt(2.0)});
  expect(4 * 38 * 38, {8, 8, 45, 45});
  expect(kSsdDefaultBoxes - 4, {150, 150, 261, 261});  // in the last map
}

// A single object of class 2.
SsdTargets Match(const torch::Tensor& box) {
  return MatchSsdTargets(box.view({1, 1, 4}),
                         torch::full({1, 1}, 2, torch::kInt64));
}

TEST(MatchSsdTargetsTest, ObjectEqualToADefaultBoxHasZeroOffset) {
  const SsdTargets targets = Match(SsdDefaultBoxes().select(1, 7000));
  EXPECT_EQ(targets.labels[0][7000].item<int64_t>(), 2);
  EXPECT_LT(targets.offsets[0].select(1, 7000).abs().max().item<float>(), 1e-4);
  const int64_t found = targets.labels.gt(0).sum().item<int64_t>();
  EXPECT_GT(found, 1);
  EXPECT_LT(found, 100);
}

TEST(MatchSsdTargetsTest, OffsetsAreDividedByDefaultSizeAndVariance) {
  const torch::Tensor box = SsdDefaultBoxes().select(1, 7000).clone();
  torch::Tensor moved = box.clone();
  moved[0] += 0.1 * box[2];
  moved[3] *= 1.1;
  const torch::Tensor offsets = Match(moved).offsets[0].select(1, 7000);
  EXPECT_NEAR(offsets[0].item<double>(), 1.0, 1e-3);
  EXPECT_NEAR(offsets[1].item<double>(), 0.0, 1e-3);
  EXPECT_NEAR(offsets[2].item<double>(), 0.0, 1e-3);
  EXPECT_NEAR(offsets[3].item<double>(), std::log(1.1) / 0.2, 1e-3);
}

TEST(MatchSsdTargetsTest, ObjectWithSmallOverlapsGetsItsBestBox) {
  const SsdTargets targets = Match(torch::tensor({0.5, 0.5, 0.01, 0.01}));
  EXPECT_EQ(targets.labels.gt(0).sum().item<int64_t>(), 1);
}

TEST(SsdLossTest, CountsObjectsAndThreeTimesAsManyBackgroundBoxes) {
  SsdTargets targets = {torch::zeros({1, 4, kSsdDefaultBoxes}),
                        torch::zeros({1, kSsdDefaultBoxes}, torch::kInt64)};
  targets.labels[0][5] = 1;
  // Every box costs ln 2 if all offsets are right.
  SsdOutput output = {torch::zeros({1, 4, kSsdDefaultBoxes}),
                      torch::zeros({1, 2, kSsdDefaultBoxes})};
  EXPECT_NEAR(SsdLoss(output, targets).item<double>(), 4 * std::log(2.0), 1e-5);
  // The boxes with the largest cost are chosen, and the offsets of an object
  // count.
  output.logits[0][1][77] = 9.0;
  output.offsets[0][2][5] = 3.0;
  EXPECT_NEAR(SsdLoss(output, targets).item<double>(),
              3 * std::log(2.0) + std::log(1 + std::exp(9.0)) + 2.5, 1e-4);
  // The offsets of a background box do not count.
  output.offsets[0][2][6] = 3.0;
  EXPECT_NEAR(SsdLoss(output, targets).item<double>(),
              3 * std::log(2.0) + std::log(1 + std::exp(9.0)) + 2.5, 1e-4);
}

}  // namespace
}  // namespace hvdlite::trainers
