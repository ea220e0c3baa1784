// Sequences for the trainers: tokens, windows of text, shares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/data/sets/token_sets.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<int64_t> RowOf(const torch::Tensor& tensor, int64_t row) {
  const torch::Tensor values = tensor[row].contiguous();
  return {values.data_ptr<int64_t>(),
          values.data_ptr<int64_t>() + values.numel()};
}

TEST(ProteinTokensTest, MarkBeginAndEndAndPadToTheLongest) {
  const ProteinSet proteins = {
      {.residues = {9, 9}, .structures = {7, 7}},
      {.residues = {0, 20}, .structures = {1, 0}},
      {.residues = {5}, .structures = {3}},
  };
  const ProteinTokens tokens = MakeProteinTokens(proteins, {1, 2});
  EXPECT_THAT(RowOf(tokens.source, 0), ElementsAre(2, 4, 24, 3));
  EXPECT_THAT(RowOf(tokens.source, 1), ElementsAre(2, 9, 3, 0));
  EXPECT_THAT(RowOf(tokens.source_positions, 1), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(RowOf(tokens.target, 0), ElementsAre(2, 5, 4));
  EXPECT_THAT(RowOf(tokens.target, 1), ElementsAre(2, 7, 0));
  EXPECT_THAT(RowOf(tokens.target_positions, 1), ElementsAre(1, 2, 0));
  EXPECT_THAT(RowOf(tokens.expected, 0), ElementsAre(5, 4, 3));
  EXPECT_THAT(RowOf(tokens.expected, 1), ElementsAre(7, 3, 0));
}

TEST(TextWindowsTest, FirstBytesPredictTheLast) {
  std::vector<uint8_t> text(21);
  std::iota(text.begin(), text.end(), uint8_t{0});
  const TextWindows windows(text, 2);
  EXPECT_EQ(windows.train_windows(), 9);
  EXPECT_EQ(windows.test_windows(), 1);
  EXPECT_THAT(RowOf(windows.Train({8, 1}), 0), ElementsAre(16, 17, 18));
  EXPECT_THAT(RowOf(windows.Train({8, 1}), 1), ElementsAre(2, 3, 4));
  EXPECT_THAT(RowOf(windows.Test({0}), 0), ElementsAre(18, 19, 20));
}

TEST(TextWindowsTest, BytesAreNotNegative) {
  const TextWindows windows({200, 255, 128}, 1);
  EXPECT_THAT(RowOf(windows.Train({0}), 0), ElementsAre(200, 255));
}

TEST(TextWindowsTest, ShortOrMissingTextIsAnErrorThatNamesTheFile) {
  const TemporaryDirectory directory;
  const std::string file = directory / "short.txt";
  std::ofstream(file) << "abcd";
  EXPECT_THAT(
      [&] { ReadTextWindows(file, 2); },
      ThrowsMessage<support::InputError>(::testing::AllOf(
          HasSubstr("short.txt"), HasSubstr("4 bytes"), HasSubstr("need 5"))));
  EXPECT_EQ((std::ofstream(file) << "abcde", 1), 1);
  EXPECT_EQ(ReadTextWindows(file, 2).test_windows(), 1);
  std::ofstream(file, std::ios::trunc).close();
  EXPECT_THROW(ReadTextWindows(file, 2), support::InputError);
  EXPECT_THAT([&] { ReadTextWindows(directory / "none", 2); },
              ThrowsMessage<support::InputError>(HasSubstr("No such file")));
  EXPECT_THAT([&] { ReadTextWindows(directory.path(), 2); },
              ThrowsMessage<support::InputError>(HasSubstr("directory")));
}

TEST(DealByLengthTest, SharesAreTheBatchAndTakeTurnsForwardAndBackward) {
  const std::vector<int64_t> indices = {10, 11, 12, 13, 14};
  const std::vector<int64_t> lengths = {1, 9, 5, 7, 3};
  EXPECT_THAT(DealByLength(indices, lengths, 0, 2), ElementsAre(11, 14, 10));
  EXPECT_THAT(DealByLength(indices, lengths, 1, 2), ElementsAre(13, 12));
  EXPECT_THAT(DealByLength(indices, lengths, 0, 1),
              ElementsAre(11, 13, 12, 14, 10));
  EXPECT_THAT(DealByLength({7}, {3}, 1, 2), ElementsAre());
  EXPECT_THAT(DealByLength(indices, {0, 0, 0, 0, 0}, 0, 2),
              ElementsAre(10, 13, 14));
}

TEST(DigitDatasetTest, PixelsAreNormalisedByMnistsMeanAndDeviation) {
  DigitSet digits;
  digits.labels = {3, 8};
  digits.pixels.assign(2 * kDigitBytes, 0);
  digits.pixels[kDigitBytes + 29] = 255;
  DigitDataset dataset(digits);
  EXPECT_EQ(dataset.size(), 2);
  const Batch batch = dataset.Load({1, 0}, 0);
  EXPECT_EQ(batch.images.sizes(), (std::vector<int64_t>{2, 1, 28, 28}));
  EXPECT_EQ(batch.labels[0].item<int64_t>(), 8);
  EXPECT_NEAR(batch.images[0][0][1][1].item<double>(), 2.8215, 1e-4);
  EXPECT_NEAR(batch.images[1][0][1][1].item<double>(), -0.4242, 1e-4);
}

}  // namespace
}  // namespace hvdlite::trainers
