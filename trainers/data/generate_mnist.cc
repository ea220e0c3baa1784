// Writes small files in MNIST's format, with digits that a network learns
// quickly. Use it to try a trainer without the real data.
//
//   generate_mnist --output DIR --train-images 2000 --test-images 400
//   generate_mnist --output DIR --full    # for torch::data::datasets::MNIST
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/flags.h"
#include "support/output_file.h"
#include "support/progress_line.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/run_generator.h"
#include "trainers/data/sets/patterns.h"

namespace {

using namespace hvdlite::trainers;  // NOLINT: this program is one of them

struct MnistGeneratorFlags {
  std::filesystem::path output;
  int64_t train_images = 2000;
  int64_t test_images = 400;
  bool plain = false;
  uint64_t seed = 1;
  bool overwrite = false;
};

// The numbers of images in MNIST. LibTorch's reader needs these numbers and
// files that are not gzipped.
constexpr int64_t kFullTrainImages = 60000;
constexpr int64_t kFullTestImages = 10000;

void AddFlags(CLI::App& app, MnistGeneratorFlags& flags) {
  app.add_option("--output", flags.output, "Directory to write to")->required();
  hvdlite::support::AddPositive(app, "--train-images", flags.train_images,
                                "Number of training images");
  hvdlite::support::AddPositive(app, "--test-images", flags.test_images,
                                "Number of test images");
  app.add_flag("--plain", flags.plain, "Do not gzip the files");
  app.add_flag_callback(
         "--full",
         [&flags] {
           flags.train_images = kFullTrainImages;
           flags.test_images = kFullTestImages;
           flags.plain = true;
         },
         "Write as many images as MNIST has, not gzipped (55 MB), for "
         "LibTorch's torch::data::datasets::MNIST")
      ->excludes("--train-images")
      ->excludes("--test-images");
  app.add_option("--seed", flags.seed, "Seed of the images")
      ->capture_default_str();
  hvdlite::support::AddOverwrite(app, flags.overwrite);
}

// The files that WriteMnist writes.
std::vector<std::filesystem::path> Files(bool gzipped) {
  const std::string ending = gzipped ? ".gz" : "";
  return {"train-images-idx3-ubyte" + ending,
          "train-labels-idx1-ubyte" + ending,
          "t10k-images-idx3-ubyte" + ending, "t10k-labels-idx1-ubyte" + ending};
}

void Generate(const MnistGeneratorFlags& flags) {
  WriteDataSet(
      flags.output, Files(!flags.plain), Files(flags.plain), flags.overwrite,
      [&](const std::filesystem::path& directory) {
        const hvdlite::support::ProgressStyle style =
            hvdlite::support::StyleOfOutput();
        WriteMnist(directory, MnistSplit::kTrain,
                   MakePatternDigits(flags.train_images, flags.seed, style),
                   !flags.plain);
        // Uses the complement of the seed, so that test and training images
        // differ.
        WriteMnist(directory, MnistSplit::kTest,
                   MakePatternDigits(flags.test_images, ~flags.seed, style),
                   !flags.plain);
      });
  std::cout << "wrote " << flags.train_images << " training and "
            << flags.test_images << " test images to " << flags.output.string()
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  MnistGeneratorFlags flags;
  CLI::App app("Writes generated digits in MNIST's format.", "generate_mnist");
  AddFlags(app, flags);
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
