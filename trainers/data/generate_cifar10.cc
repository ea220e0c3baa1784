// Writes small files in CIFAR-10's binary format, with ten classes of images
// that a network learns quickly: to try a trainer where the real data is not at
// hand.
//
//   generate_cifar10 --output DIR --train-images 2000 --test-images 400
//   mpirun -np 2 train_resnet50 --data-dir DIR
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <string>

#include "tools/support/flags.h"
#include "tools/support/input_error.h"
#include "tools/support/progress_line.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/run_generator.h"
#include "trainers/data/sets/patterns.h"

namespace {

using namespace hvdlite::trainers;  // NOLINT: this program is one of them

constexpr int kMaxFiles = 99;

struct Cifar10GeneratorFlags {
  std::filesystem::path output;
  int64_t train_images = 5000;
  int64_t test_images = 1000;
  int64_t files = 5;
  uint64_t seed = 1;
};

std::filesystem::path TrainFile(const Cifar10GeneratorFlags& flags,
                                int64_t index) {
  return flags.output / ("data_batch_" + std::to_string(index) + ".bin");
}

// A trainer would read them, too.
void RequireNoOtherFiles(const Cifar10GeneratorFlags& flags) {
  for (int64_t i = flags.files + 1; i <= kMaxFiles; ++i) {
    const std::filesystem::path file = TrainFile(flags, i);
    if (!std::filesystem::exists(file)) continue;
    throw hvdlite::support::InputError(
        "'" + file.string() +
        "' is of other images and would be trained with, too; "
        "write to another directory or remove it");
  }
}

void Generate(const Cifar10GeneratorFlags& flags) {
  if (flags.files > flags.train_images) {
    throw hvdlite::support::InputError("--files is larger than --train-images");
  }
  CreateOutputDirectory(flags.output);
  RequireNoOtherFiles(flags);
  const hvdlite::support::ProgressStyle style =
      hvdlite::support::StyleOfOutput();
  const ImageSet train =
      MakePatternImages(flags.train_images, flags.seed, style);
  for (int64_t i = 0; i < flags.files; ++i) {
    WriteCifar10File(TrainFile(flags, i + 1), train,
                     flags.train_images * i / flags.files,
                     flags.train_images * (i + 1) / flags.files);
  }
  // Drawn with the complement, so that no test image is a training image.
  const ImageSet test =
      MakePatternImages(flags.test_images, ~flags.seed, style);
  WriteCifar10File(flags.output / "test_batch.bin", test, 0, test.size());
  std::cout << "wrote " << flags.train_images << " training and "
            << flags.test_images << " test images to " << flags.output.string()
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  Cifar10GeneratorFlags flags;
  CLI::App app("Writes generated images in CIFAR-10's binary format.",
               "generate_cifar10");
  app.add_option("--output", flags.output, "Directory to write to")->required();
  hvdlite::support::AddPositive(app, "--train-images", flags.train_images,
                                "Training images");
  hvdlite::support::AddPositive(app, "--test-images", flags.test_images,
                                "Test images");
  app.add_option("--files", flags.files,
                 "Files data_batch_N.bin to spread the training images over")
      ->check(CLI::Range(1, kMaxFiles))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Seed of the images")
      ->capture_default_str();
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
