// Writes small images in the folders of PACS, with classes that a network
// learns quickly: to try a trainer where the real data is not at hand.
//
//   generate_pacs --output DIR --images-per-class 20
//   mpirun -np 2 train_resnet50 --data-dir DIR --image-size 64
#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <string>

#include "tools/support/progress_line.h"
#include "trainers/data/formats/image_file.h"
#include "trainers/data/run_generator.h"
#include "trainers/data/sets/patterns.h"

namespace {

using namespace hvdlite::trainers;  // NOLINT: this program is one of them

struct PacsGeneratorFlags {
  std::filesystem::path output;
  int64_t images_per_class = 10;
  bool full = false;
  int64_t size = 64;
  std::string format = "jpeg";
  uint64_t seed = 1;
};

void AddFlags(CLI::App& app, PacsGeneratorFlags& flags) {
  app.add_option("--output", flags.output, "Directory to write to")->required();
  app.add_option("--images-per-class", flags.images_per_class,
                 "Images of each class in each domain")
      ->check(CLI::Range(1, 999))
      ->capture_default_str();
  app.add_flag("--full", flags.full,
               "As many images as each domain of PACS has, 9991 in all, dealt "
               "evenly to its classes")
      ->excludes("--images-per-class");
  app.add_option("--size", flags.size, "Side of the images in pixels")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  app.add_option("--format", flags.format, "Format of the files")
      ->check(CLI::IsMember({"jpeg", "png"}))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Seed of the images")
      ->capture_default_str();
}

// As PACS names its files: pic_001.jpg.
std::string FileName(int64_t index, bool jpeg) {
  const std::string number = std::to_string(index + 1);
  return "pic_" + std::string(3 - number.size(), '0') + number +
         (jpeg ? ".jpg" : ".png");
}

// Of PacsDomains(): Li et al., "Deeper, Broader and Artier Domain
// Generalization" (ICCV 2017).
constexpr std::array<int64_t, 4> kImagesOfDomain = {2048, 2344, 1670, 3929};

int64_t ImagesOf(const PacsGeneratorFlags& flags, int domain, int label,
                 int classes) {
  if (!flags.full) return flags.images_per_class;
  const int64_t all = kImagesOfDomain[static_cast<size_t>(domain)];
  return all / classes + (label < all % classes ? 1 : 0);
}

void Generate(const PacsGeneratorFlags& flags) {
  const bool jpeg = flags.format == "jpeg";
  const auto domains = static_cast<int>(PacsDomains().size());
  const auto classes = static_cast<int>(PacsClasses().size());
  const int64_t all =
      flags.full ? std::reduce(kImagesOfDomain.begin(), kImagesOfDomain.end())
                 : domains * classes * flags.images_per_class;
  int64_t written = 0;
  hvdlite::support::ProgressLine line(
      {.item = "writing image", .items = "images"});
  for (int domain = 0; domain < domains; ++domain) {
    for (int label = 0; label < classes; ++label) {
      const std::filesystem::path folder =
          flags.output / PacsDomains()[domain] / PacsClasses()[label];
      CreateOutputDirectory(folder);
      const int64_t images = ImagesOf(flags, domain, label, classes);
      for (int64_t i = 0; i < images; ++i) {
        WriteImageFile(
            folder / FileName(i, jpeg),
            MakePatternPicture(domain, label, flags.size, flags.seed, i),
            jpeg ? ImageFormat::kJpeg : ImageFormat::kPng);
        line.Show(++written, all);
      }
    }
  }
  line.Clear();
  std::cout << "wrote " << written << " images of " << classes << " classes in "
            << domains << " domains to " << flags.output.string() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  PacsGeneratorFlags flags;
  CLI::App app("Writes generated images in the folders of PACS.",
               "generate_pacs");
  AddFlags(app, flags);
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
