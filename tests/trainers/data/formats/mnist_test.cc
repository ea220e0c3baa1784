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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string BigEndian(std::initializer_list<uint32_t> numbers) {
  std::string bytes;
  for (const uint32_t number : numbers) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes += static_cast<char>(number >> shift);
    }
  }
  return bytes;
}

// A file of images, each of one shade.
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

  // Expects that they are refused with a message that names the file
  // train-`name` and has `part`.
  void ExpectRefused(const std::string& name, const std::string& part) const {
    EXPECT_THAT(
        [&] { ReadMnist(directory_.path(), MnistSplit::kTrain); },
        ThrowsMessage<support::InputError>(AllOf(
            HasSubstr("'" + (directory_ / ("train-" + name)).string() + "'"),
            HasSubstr(part))));
  }

  const TemporaryDirectory directory_;
};

constexpr char kImageFile[] = "images-idx3-ubyte";
constexpr char kLabelFile[] = "labels-idx1-ubyte";

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

TEST_F(MnistTest, ReadsGzippedFilesAndTheArchivesFolder) {
  const std::filesystem::path folder = directory_ / "MNIST/raw";
  std::filesystem::create_directories(folder);
  WritePlainOrGzipped(folder / "train-images-idx3-ubyte.gz", Images("ab"));
  WriteFileBytes(folder / "train-labels-idx1-ubyte", Labels({3, 4}));
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

TEST_F(MnistTest, WrongMagicNumberIsRefused) {
  Write(Labels({1}), Labels({1}));
  ExpectRefused(kImageFile,
                "magic number 0x00000801 at offset 0; expected 0x00000803");
  Write(Images("a"), Images("a"));
  ExpectRefused(kLabelFile,
                "magic number 0x00000803 at offset 0; expected 0x00000801");
}

TEST_F(MnistTest, OtherDimensionsAreRefused) {
  Write(BigEndian({0x803, 1, 32, 28}), Labels({1}));
  ExpectRefused(kImageFile,
                "dimension 32 of the images at offset 8; expected 28");
  Write(BigEndian({0x803, 1, 28, 32}), Labels({1}));
  ExpectRefused(kImageFile,
                "dimension 32 of the images at offset 12; expected 28");
}

TEST_F(MnistTest, FilesThatAreCutShortAreRefused) {
  const std::string images = Images("ab");
  Write(images.substr(0, 2), Labels({1, 2}));
  ExpectRefused(kImageFile, "ends at offset 2, in the magic number");
  Write(images.substr(0, 14), Labels({1, 2}));
  ExpectRefused(kImageFile, "ends at offset 14, in the dimensions");
  Write(images.substr(0, images.size() - 1), Labels({1, 2}));
  ExpectRefused(kImageFile,
                "ends at offset 1583, in image 1 of 2: expected 1 more");
  Write(images, Labels({1, 2}).substr(0, 9));
  ExpectRefused(kLabelFile, "ends at offset 9, in label 1 of 2");
}

TEST_F(MnistTest, ImagesThatTheHeaderPromisesAreNotAllocatedBeforeTheyAreRead) {
  Write(BigEndian({0x803, 0xffffffff, 28, 28}), Labels({1}));
  ExpectRefused(kImageFile, "ends at offset 16, in image 0 of 4294967295");
}

TEST_F(MnistTest, TrailingBytesAreRefused) {
  Write(Images("a") + "x", Labels({1}));
  ExpectRefused(kImageFile, "expected its end at offset 800");
  Write(Images("a"), Labels({1}) + "x");
  ExpectRefused(kLabelFile, "expected its end at offset 9");
}

TEST_F(MnistTest, LabelAbove9IsRefused) {
  Write(Images("abc"), Labels({0, 9, 10}));
  ExpectRefused(kLabelFile, "label 10 of image 2 in ");
  ExpectRefused(kLabelFile, "at offset 10; expected 0 to 9");
}

TEST_F(MnistTest, DifferentNumbersOfImagesAndLabelsAreRefused) {
  Write(Images("abc"), Labels({1, 2}));
  ExpectRefused(kImageFile, "has 3 images, ");
  ExpectRefused(kLabelFile, "' 2 labels (each at offset 4)");
}

TEST_F(MnistTest, FilesWithoutImagesAreRefused) {
  Write(Images(""), Labels(""));
  ExpectRefused(kImageFile, "has 0 images, at offset 4; expected at least one");
}

TEST_F(MnistTest, MissingFilesAreAnErrorThatNamesThemAndTheGenerator) {
  EXPECT_THAT([&] { ReadMnist(directory_.path(), MnistSplit::kTest); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("no t10k-images-idx3-ubyte and no "
                                  "t10k-images-idx3-ubyte.gz in '" +
                                  directory_.path().string() + "'"),
                        HasSubstr("MNIST/raw"), HasSubstr("generate_mnist"))));
  WriteFileBytes(directory_ / "train-images-idx3-ubyte", Images("a"));
  EXPECT_THAT([&] { ReadMnist(directory_.path(), MnistSplit::kTrain); },
              ThrowsMessage<support::InputError>(
                  HasSubstr("no train-labels-idx1-ubyte and no ")));
}

TEST_F(MnistTest, MissingDirectoryIsAnError) {
  EXPECT_THAT([] { ReadMnist("/nonexistent/data", MnistSplit::kTrain); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("/nonexistent/data"),
                        HasSubstr("No such file or directory"))));
}

TEST_F(MnistTest, UnwritableFolderIsAnErrorThatNamesTheFile) {
  EXPECT_THAT(
      [] {
        WriteMnist("/nonexistent", MnistSplit::kTrain, MakePatternDigits(1, 1),
                   /*gzipped=*/true);
      },
      ThrowsMessage<support::InputError>(
          HasSubstr("'/nonexistent/train-images-idx3-ubyte.gz'")));
}

// Which takes no other numbers of images.
TEST_F(MnistTest, LibTorchReadsFilesOfFullSizeAlike) {
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
