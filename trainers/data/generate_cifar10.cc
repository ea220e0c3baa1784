// Writes small files in CIFAR-10's binary format, with ten classes of images
// that a network learns quickly. Use it to try a trainer without the real data.
//
//   generate_cifar10 --output DIR --train-images 2000 --test-images 400
//   mpirun -np 2 train_resnet50 --data-dir DIR
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/flags.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "support/progress_line.h"
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
  bool overwrite = false;
};

constexpr char kTestFile[] = "test_batch.bin";

std::filesystem::path TrainFile(int64_t index) {
  return "data_batch_" + std::to_string(index) + ".bin";
}

void WriteFiles(const Cifar10GeneratorFlags& flags,
                const std::filesystem::path& directory) {
  const hvdlite::support::ProgressStyle style =
      hvdlite::support::StyleOfOutput();
  const ImageSet train =
      MakePatternImages(flags.train_images, flags.seed, style);
  for (int64_t i = 0; i < flags.files; ++i) {
    WriteCifar10File(directory / TrainFile(i + 1), train,
                     flags.train_images * i / flags.files,
                     flags.train_images * (i + 1) / flags.files);
  }
  // Uses the complement of the seed, so that test and training images differ.
  const ImageSet test =
      MakePatternImages(flags.test_images, ~flags.seed, style);
  WriteCifar10File(directory / kTestFile, test, 0, test.size());
}

void Generate(const Cifar10GeneratorFlags& flags) {
  if (flags.files > flags.train_images) {
    throw hvdlite::support::InputError("--files is larger than --train-images");
  }
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> others;
  for (int64_t i = 1; i <= kMaxFiles; ++i) {
    (i <= flags.files ? files : others).push_back(TrainFile(i));
  }
  files.emplace_back(kTestFile);  // written last: the set is then complete
  WriteDataSet(flags.output, files, others, flags.overwrite,
               [&](const std::filesystem::path& directory) {
                 WriteFiles(flags, directory);
               });
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
                                "Number of training images");
  hvdlite::support::AddPositive(app, "--test-images", flags.test_images,
                                "Number of test images");
  app.add_option("--files", flags.files,
                 "Number of files data_batch_N.bin for the training images")
      ->check(CLI::Range(1, kMaxFiles))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Seed of the images")
      ->capture_default_str();
  hvdlite::support::AddOverwrite(app, flags.overwrite);
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
