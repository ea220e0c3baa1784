// Tests how the readers of all formats handle missing, truncated or corrupt
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/data/npy_array.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/sets/patterns.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Directory = std::filesystem::path;

struct Format {
  std::string name;
  std::string file;
  void (*write)(const Directory&);  // one sample
  void (*read)(const Directory&);
  int64_t spare_bytes = 0;  // optional bytes at the end of the file
};

RgbImage PictureToSpoil() {
  return MakePatternPicture(/*domain=*/1, /*label=*/0, /*side=*/64, /*seed=*/1,
                            0);
}

const Format kCifar10 = {"Cifar10", "data_batch_1.bin",
                         [](const Directory& directory) {
                           WriteCifar10File(directory / "data_batch_1.bin",
                                            MakePatternImages(1, 7), 0, 1);
                         },
                         [](const Directory& directory) {
                           ReadCifar10(directory, Cifar10Split::kTrain);
                         }};
const Format kMnist = {"Mnist", "train-images-idx3-ubyte",
                       [](const Directory& directory) {
                         WriteMnist(directory, MnistSplit::kTrain,
                                    MakePatternDigits(1, 1),
                                    /*gzipped=*/false);
                       },
                       [](const Directory& directory) {
                         ReadMnist(directory, MnistSplit::kTrain);
                       }};
const Format kNpy = {
    "Npy", "array.npy",
    [](const Directory& directory) {
      WriteNpy(directory / "array.npy", {.shape = {2}, .values = {1, 2}},
               NpyElement::kFloat32);
    },
    [](const Directory& directory) { ReadNpy(directory / "array.npy"); }};
const Format kJpeg = {
    "Jpeg", "a.jpg",
    [](const Directory& directory) {
      WriteImageFile(directory / "a.jpg", PictureToSpoil(), ImageFormat::kJpeg);
    },
    [](const Directory& directory) { ReadImageFile(directory / "a.jpg"); },
    /*spare_bytes=*/2};
const Format kPng = {
    "Png", "a.png",
    [](const Directory& directory) {
      WriteImageFile(directory / "a.png", PictureToSpoil(), ImageFormat::kPng);
    },
    [](const Directory& directory) { ReadImageFile(directory / "a.png"); },
    /*spare_bytes=*/20};

class FormatTest : public ::testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(All, FormatTest,
                         ::testing::Values(kCifar10, kMnist, kNpy, kJpeg, kPng),
                         [](const auto& info) { return info.param.name; });

TEST_P(FormatTest, MissingDirectoryIsAnError) {
  EXPECT_THAT([] { GetParam().read("/nonexistent/data"); },
              ThrowsMessage<support::InputError>(
                  ::testing::AllOf(HasSubstr("/nonexistent/data"),
                                   HasSubstr("No such file or directory"))));
}

TEST_P(FormatTest, UnwritableDirectoryIsAnErrorThatNamesTheFile) {
  EXPECT_THAT([] { GetParam().write("/nonexistent"); },
              ThrowsMessage<support::InputError>(
                  HasSubstr("'/nonexistent/" + GetParam().file + "'")));
}

TEST_P(FormatTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const TemporaryDirectory directory;
  GetParam().write(directory.path());
  const std::string file = directory / GetParam().file;
  const std::string whole = FileBytes(file);
  for (size_t size = 0; size + GetParam().spare_bytes < whole.size();
       size += size < 100 ? 1 : 7) {
    WriteFileBytes(file, whole.substr(0, size));
    EXPECT_THAT([&] { GetParam().read(directory.path()); },
                ThrowsMessage<support::InputError>(HasSubstr(file)))
        << size;
  }
}

struct BadFile {
  Format format;
  std::string name;
  // Names and bytes, in the format's directory.
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> message;  // parts of the error message
};

class BadFileTest : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFileTest, IsAnErrorWithTheReason) {
  const TemporaryDirectory directory;
  for (const auto& [name, bytes] : GetParam().files) {
    WriteFileBytes(directory / name, bytes);
  }
  try {
    GetParam().format.read(directory.path());
    ADD_FAILURE() << "is read";
  } catch (const support::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(directory.path().string()));
    for (const std::string& part : GetParam().message) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

// A file of the format with a change.
BadFile Changed(const Format& format, const std::string& name,
                const std::function<void(std::string&)>& change,
                const std::vector<std::string>& message) {
  const TemporaryDirectory directory;
  format.write(directory.path());
  std::string bytes = FileBytes(directory / format.file);
  change(bytes);
  return {format, name, {{format.file, bytes}}, message};
}

std::string CifarRecord(char label) { return label + std::string(3072, 'x'); }

std::string BigEndianBytes(std::initializer_list<uint32_t> numbers) {
  std::string bytes;
  for (const uint32_t number : numbers) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes += static_cast<char>(number >> shift);
    }
  }
  return bytes;
}

std::string ImagesOf(uint32_t count) {
  return BigEndianBytes({0x803, count, 28, 28}) + std::string(784 * count, 'x');
}

std::string LabelsOf(const std::string& labels) {
  return BigEndianBytes({0x801, static_cast<uint32_t>(labels.size())}) + labels;
}

BadFile BadMnist(const std::string& name, const std::string& images,
                 const std::string& labels,
                 const std::vector<std::string>& message) {
  return {kMnist,
          name,
          {{"train-images-idx3-ubyte", images},
           {"train-labels-idx1-ubyte", labels}},
          message};
}

// The offset of a JPEG's marker.
size_t FindMarker(const std::string& bytes, char code) {
  return bytes.find(std::string("\xff") + code);
}

constexpr char kStartOfFrame = '\xc0';
constexpr char kStartOfScan = '\xda';

// Changes the size to 32639 or 32576 pixels a side.
void MakeHugeJpeg(std::string& bytes) {
  const size_t frame = FindMarker(bytes, kStartOfFrame);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = 0x7f;  // height and width
}

void MakeHugePng(std::string& bytes) {
  constexpr size_t kHeader = 12;  // IHDR's type and its 13 bytes
  for (const size_t side : {kHeader + 4, kHeader + 8}) bytes[side + 2] = 0x7f;
  const uLong checksum =
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + kHeader, 4 + 13);
  bytes.replace(kHeader + 4 + 13, 4,
                BigEndianBytes({static_cast<uint32_t>(checksum)}));
}

// A sequence of ones is not a Huffman code; each 0xff is followed by a zero.
void SpoilScan(std::string& bytes) {
  const size_t scan = FindMarker(bytes, kStartOfScan);
  for (size_t i = 40; i < 140; ++i) {
    bytes[scan + i] = i % 2 == 0 ? '\xff' : '\0';
  }
}

void SpoilFrame(std::string& bytes) {
  const size_t frame = FindMarker(bytes, kStartOfFrame);
  bytes[frame + 2] = 0;  // the length of the frame's header
  bytes[frame + 3] = 3;
}

std::vector<BadFile> BadFiles() {
  const std::string two = {1, 2};
  return {
      {kCifar10, "NoFile", {}, {"data_batch_*.bin"}},
      {kCifar10,
       "IncompleteRecord",
       {{"data_batch_1.bin", CifarRecord(1) + CifarRecord(2).substr(0, 1000)}},
       {"data_batch_1.bin", "4073 bytes", "multiple of 3073", "record 1",
        "offset 3073"}},
      {kCifar10, "Empty", {{"data_batch_1.bin", ""}}, {"0 bytes"}},
      {kCifar10,
       "LabelAbove9",
       {{"data_batch_1.bin",
         CifarRecord(0) + CifarRecord(9) + CifarRecord(10)}},
       {"label 10", "record 2", "offset 6146", "expected 0 to 9"}},

      {kMnist,
       "NoFile",
       {},
       {"no train-images-idx3-ubyte and no train-images-idx3-ubyte.gz in '",
        "MNIST/raw", "generate_mnist"}},
      {kMnist,
       "NoLabels",
       {{"train-images-idx3-ubyte", ImagesOf(1)}},
       {"no train-labels-idx1-ubyte and no "}},
      BadMnist("LabelsAsImages", LabelsOf({1}), LabelsOf({1}),
               {"train-images",
                "magic number 0x00000801 at offset 0; expected 0x00000803"}),
      BadMnist("ImagesAsLabels", ImagesOf(1), ImagesOf(1),
               {"train-labels",
                "magic number 0x00000803 at offset 0; expected 0x00000801"}),
      BadMnist("OtherHeight", BigEndianBytes({0x803, 1, 32, 28}), LabelsOf({1}),
               {"dimension 32 of the images at offset 8; expected 28"}),
      BadMnist("OtherWidth", BigEndianBytes({0x803, 1, 28, 32}), LabelsOf({1}),
               {"dimension 32 of the images at offset 12; expected 28"}),
      BadMnist("CutInTheMagicNumber", ImagesOf(2).substr(0, 2), LabelsOf(two),
               {"train-images", "ends at offset 2, in the magic number"}),
      BadMnist("CutInTheDimensions", ImagesOf(2).substr(0, 14), LabelsOf(two),
               {"train-images", "ends at offset 14, in the dimensions"}),
      BadMnist("CutInAnImage", ImagesOf(2).substr(0, 1583), LabelsOf(two),
               {"ends at offset 1583, in image 1 of 2: expected 1 more"}),
      BadMnist("CutInTheLabels", ImagesOf(2), LabelsOf(two).substr(0, 9),
               {"train-labels", "ends at offset 9, in label 1 of 2"}),
      // The images are not allocated before they are read.
      BadMnist("PromisesMoreThanThereIs",
               BigEndianBytes({0x803, 0xffffffff, 28, 28}), LabelsOf({1}),
               {"ends at offset 16, in image 0 of 4294967295"}),
      BadMnist("DataAfterTheImages", ImagesOf(1) + "x", LabelsOf({1}),
               {"train-images", "its end should be at offset 800"}),
      BadMnist("DataAfterTheLabels", ImagesOf(1), LabelsOf({1}) + "x",
               {"train-labels", "its end should be at offset 9"}),
      BadMnist("LabelAbove9", ImagesOf(3), LabelsOf({0, 9, 10}),
               {"label 10 of image 2 in ", "train-labels",
                "at offset 10; expected 0 to 9"}),
      BadMnist("FewerLabelsThanImages", ImagesOf(3), LabelsOf(two),
               {"has 3 images, ", "' 2 labels (each at offset 4)"}),
      BadMnist("NoImages", ImagesOf(0), LabelsOf(""),
               {"has 0 images, at offset 4; expected at least one"}),

      {kJpeg, "Empty", {{"a.jpg", ""}}, {"a.jpg'", "0 bytes"}},
      {kJpeg,
       "NoImage",
       {{"a.jpg", "<html>not found</html>"}},
       {"a.jpg' is not an image", "22 bytes", "as a JPEG nor as a PNG"}},
      Changed(kJpeg, "CutInTheScan",
              [](std::string& bytes) { bytes.resize(bytes.size() - 500); },
              {"Premature end of JPEG file", "after offset ", " of "}),
      Changed(kJpeg, "CorruptScan", SpoilScan, {"Corrupt JPEG data"}),
      Changed(kJpeg, "CorruptHeader", SpoilFrame, {"after offset "}),
      // The size is checked before decoding.
      Changed(kJpeg, "Huge", MakeHugeJpeg,
              {"32639x32639 pixels", "at most 67108864"}),
      Changed(kPng, "Huge", MakeHugePng,
              {"32576x32576 pixels", "at most 67108864"}),
      Changed(kPng, "Cut", [](std::string& bytes) { bytes.resize(500); },
              {"of 500 bytes: "}),
      Changed(kPng, "CorruptPixels",
              [](std::string& bytes) { bytes[bytes.size() / 2] ^= 0x10; },
              {"bytes: "})};
}

INSTANTIATE_TEST_SUITE_P(All, BadFileTest, ::testing::ValuesIn(BadFiles()),
                         [](const auto& info) {
                           return info.param.format.name + "_" +
                                  info.param.name;
                         });

}  // namespace
}  // namespace hvdlite::trainers
