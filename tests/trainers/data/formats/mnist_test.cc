#include "trainers/data/formats/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/datasets/mnist.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <numeric>
#include <tuple>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::ElementsAre;

std::string BigEndian(std::initializer_list<uint32_t> numbers) {
  std::string bytes;
  for (const uint32_t number : numbers) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes += static_cast<char>(number >> shift);
    }
  }
  return bytes;
}

// A file of images, each of one grey value.
std::string Images(const std::string& shades) {
  std::string bytes =
      BigEndian({0x803, static_cast<uint32_t>(shades.size()), 28, 28});
  for (const char shade : shades) bytes += std::string(784, shade);
  return bytes;
}

std::string Labels(const std::string& labels) {
  return BigEndian({0x801, static_cast<uint32_t>(labels.size())}) + labels;
}

class MnistTest : public ::testing::Test {
 protected:
  // Writes the training files.
  void Write(const std::string& images, const std::string& labels) const {
    WriteFileBytes(directory_ / "train-images-idx3-ubyte", images);
    WriteFileBytes(directory_ / "train-labels-idx1-ubyte", labels);
  }

  const TemporaryDirectory directory_;
};

TEST_F(MnistTest, ReadsImagesAndLabelsOfBothSplits) {
  Write(Images("abc"), Labels({1, 2, 9}));
  WriteFileBytes(directory_ / "t10k-images-idx3-ubyte", Images("d"));
  WriteFileBytes(directory_ / "t10k-labels-idx1-ubyte", Labels({4}));
  const DigitSet train = ReadMnist(directory_.path(), MnistSplit::kTrain);
  EXPECT_THAT(train.labels, ElementsAre(1, 2, 9));
  ASSERT_EQ(train.pixels.size(), 3U * 784);
  EXPECT_EQ(train.image(0)[0], 'a');
  EXPECT_EQ(train.image(1)[783], 'b');
  EXPECT_EQ(train.image(2)[0], 'c');
  EXPECT_THAT(ReadMnist(directory_.path(), MnistSplit::kTest).labels,
              ElementsAre(4));
}

TEST_F(MnistTest, ReadsGzippedFilesAndTheArchivesDirectory) {
  const std::filesystem::path directory = directory_ / "MNIST/raw";
  std::filesystem::create_directories(directory);
  WritePlainOrGzipped(directory / "train-images-idx3-ubyte.gz", Images("ab"));
  WriteFileBytes(directory / "train-labels-idx1-ubyte", Labels({3, 4}));
  EXPECT_THAT(ReadMnist(directory_.path(), MnistSplit::kTrain).labels,
              ElementsAre(3, 4));
}

TEST_F(MnistTest, ReadsBackWhatItWrites) {
  const DigitSet digits = MakePatternDigits(23, /*seed=*/7);
  for (const bool gzipped : {true, false}) {
    const TemporaryDirectory directory;
    for (const MnistSplit split : {MnistSplit::kTrain, MnistSplit::kTest}) {
      WriteMnist(directory.path(), split, digits, gzipped);
      const DigitSet read = ReadMnist(directory.path(), split);
      EXPECT_EQ(read.labels, digits.labels);
      EXPECT_EQ(read.pixels, digits.pixels);
    }
    EXPECT_EQ(std::filesystem::exists(directory / "t10k-images-idx3-ubyte.gz"),
              gzipped);
    EXPECT_EQ(std::filesystem::exists(directory / "train-labels-idx1-ubyte"),
              !gzipped);
  }
}

TEST_F(MnistTest, WritesTheDocumentedBytes) {
  const DigitSet digits{.labels = {5, 6},
                        .pixels = std::vector<uint8_t>(2 * 784, 'x')};
  WriteMnist(directory_.path(), MnistSplit::kTrain, digits, /*gzipped=*/false);
  EXPECT_EQ(FileBytes(directory_ / "train-images-idx3-ubyte"), Images("xx"));
  EXPECT_EQ(FileBytes(directory_ / "train-labels-idx1-ubyte"), Labels({5, 6}));
}

// LibTorch accepts only the full number of images.
TEST_F(MnistTest, LibTorchReadsTheSameFromFullSizeFiles) {
  using torch::data::datasets::MNIST;
  for (const auto& [split, mode, count] :
       {std::tuple(MnistSplit::kTrain, MNIST::Mode::kTrain, 60000),
        std::tuple(MnistSplit::kTest, MNIST::Mode::kTest, 10000)}) {
    const DigitSet digits = MakePatternDigits(count, /*seed=*/1);
    WriteMnist(directory_.path(), split, digits, /*gzipped=*/false);
    const MNIST read(directory_.path().string(), mode);
    EXPECT_EQ(read.targets().sum().item<int64_t>(),
              std::accumulate(digits.labels.begin(), digits.labels.end(),
                              int64_t{0}));
    const int64_t last = count - 1;
    const torch::Tensor pixels =
        torch::tensor(std::vector<uint8_t>(digits.image(last),
                                           digits.image(last) + kDigitBytes),
                      torch::kUInt8)
            .view({1, kDigitSide, kDigitSide});
    EXPECT_TRUE(torch::allclose(read.images()[last], pixels / 255.0));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
