// Files of training data: MNIST, CIFAR-10, NumPy arrays, PNG and JPEG. For
// other files, an InputError must name the file.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "tests/fuzz/fuzz_input.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/formats/npy.h"

namespace hvdlite::fuzz {
namespace {

using namespace hvdlite::trainers;  // NOLINT: all formats

void ReadDigits(const FuzzDirectory& directory, FuzzInput& input) {
  const size_t images = input.Number() % 8192;
  directory.Write("train-images-idx3-ubyte", input.Bytes(images));
  directory.Write("train-labels-idx1-ubyte", input.Rest());
  const DigitSet digits = ReadMnist(directory / "", MnistSplit::kTrain);
  FUZZ_CHECK(digits.pixels.size() ==
             digits.labels.size() * static_cast<size_t>(kDigitBytes));
}

void ReadCifar(const FuzzDirectory& directory, FuzzInput& input) {
  directory.Write("test_batch.bin", input.Rest());
  const ImageSet images = ReadCifar10(directory / "", Cifar10Split::kTest);
  FUZZ_CHECK(images.pixels.size() ==
             images.labels.size() * static_cast<size_t>(kImageBytes));
}

void ReadArray(const FuzzDirectory& directory, FuzzInput& input) {
  NpyReader reader(directory.Write("a.npy", input.Rest()));
  FUZZ_CHECK(ElementCount(reader.shape()) >= 0);
  std::array<float, 64> values;
  while (reader.remaining() > 0) {
    const auto count = std::min<int64_t>(reader.remaining(), values.size());
    reader.Read(std::span(values).first(static_cast<size_t>(count)), "values");
  }
}

void ReadImage(const FuzzDirectory& directory, FuzzInput& input) {
  const RgbImage image = ReadImageFile(directory.Write("image", input.Rest()));
  FUZZ_CHECK(!(image == RgbImage()));
}

void Run(FuzzInput input) {
  static const FuzzDirectory directory;
  try {
    switch (input.Below(4)) {
      case 0:
        ReadDigits(directory, input);
        break;
      case 1:
        ReadCifar(directory, input);
        break;
      case 2:
        ReadArray(directory, input);
        break;
      default:
        ReadImage(directory, input);
    }
  } catch (const support::InputError& error) {
    FUZZ_CHECK(*error.what() != '\0');
  }
  directory.Clear();
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}
