// Writes small images in the directories of PACS, with classes that a network
// learns quickly. Use it to try a trainer without the real data.
//
//   generate_pacs --output DIR --images-per-class 20
//   mpirun -np 2 train_resnet50 --data-dir DIR --image-size 64
//       --augmentation domain-generalisation
#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "support/output_file.h"
#include "support/progress_line.h"
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
  bool overwrite = false;
};

void AddFlags(CLI::App& app, PacsGeneratorFlags& flags) {
  app.add_option("--output", flags.output, "Directory to write to")->required();
  app.add_option("--images-per-class", flags.images_per_class,
                 "Number of images of each class in each domain")
      ->check(CLI::Range(1, 999))
      ->capture_default_str();
  app.add_flag("--full", flags.full,
               "Write as many images as each domain of PACS has, 9991 in all, "
               "with equal numbers for its classes")
      ->excludes("--images-per-class");
  app.add_option("--size", flags.size, "Side of the images in pixels")
      ->check(CLI::Range(8, 4096))
      ->capture_default_str();
  app.add_option("--format", flags.format, "Format of the files")
      ->check(CLI::IsMember({"jpeg", "png"}))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Seed of the images")
      ->capture_default_str();
  hvdlite::support::AddOverwrite(app, flags.overwrite);
}

// A file name in the style of PACS: pic_001.jpg.
std::string FileName(int64_t index, bool jpeg) {
  const std::string number = std::to_string(index + 1);
  return "pic_" + std::string(3 - number.size(), '0') + number +
         (jpeg ? ".jpg" : ".png");
}

// Images per domain of PacsDomains(): Li et al., "Deeper, Broader and Artier
// Domain Generalization" (ICCV 2017).
constexpr std::array<int64_t, 4> kImagesOfDomain = {2048, 2344, 1670, 3929};

int64_t ImagesOf(const PacsGeneratorFlags& flags, int domain, int label,
                 int classes) {
  if (!flags.full) return flags.images_per_class;
  const int64_t all = kImagesOfDomain[static_cast<size_t>(domain)];
  return all / classes + (label < all % classes ? 1 : 0);
}

// An image of the data set.
struct Picture {
  std::filesystem::path file;
  int domain = 0;
  int label = 0;
  int64_t index = 0;  // within its class
};

std::vector<Picture> PicturesOf(const PacsGeneratorFlags& flags) {
  const auto domains = static_cast<int>(PacsDomains().size());
  const auto classes = static_cast<int>(PacsClasses().size());
  std::vector<Picture> pictures;
  for (int domain = 0; domain < domains; ++domain) {
    for (int label = 0; label < classes; ++label) {
      const std::filesystem::path directory =
          std::filesystem::path(PacsDomains()[domain]) / PacsClasses()[label];
      const int64_t images = ImagesOf(flags, domain, label, classes);
      for (int64_t i = 0; i < images; ++i) {
        pictures.push_back({directory / FileName(i, flags.format == "jpeg"),
                            domain, label, i});
      }
    }
  }
  return pictures;
}

// The files in the directories of classes that are not in `files`.
std::vector<std::filesystem::path> OtherPictures(
    const PacsGeneratorFlags& flags,
    const std::set<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> others;
  for (const auto& domain : PacsDomains()) {
    for (const auto& label : PacsClasses()) {
      const auto directory = std::filesystem::path(domain) / label;
      std::error_code ignored;
      for (const auto& entry : std::filesystem::directory_iterator(
               flags.output / directory, ignored)) {
        const auto file = directory / entry.path().filename();
        if (!files.contains(file)) others.push_back(file);
      }
    }
  }
  return others;
}

void Generate(const PacsGeneratorFlags& flags) {
  const bool jpeg = flags.format == "jpeg";
  const std::vector<Picture> pictures = PicturesOf(flags);
  std::vector<std::filesystem::path> files;
  for (const Picture& picture : pictures) files.push_back(picture.file);
  hvdlite::support::ProgressLine line(
      {.item = "writing image", .items = "images"});
  WriteDataSet(
      flags.output, files, OtherPictures(flags, {files.begin(), files.end()}),
      flags.overwrite, [&](const std::filesystem::path& directory) {
        int64_t written = 0;
        for (const Picture& picture : pictures) {
          WriteImageFile(
              directory / picture.file,
              MakePatternPicture(picture.domain, picture.label, flags.size,
                                 flags.seed, picture.index),
              jpeg ? ImageFormat::kJpeg : ImageFormat::kPng);
          line.Show(++written, static_cast<int64_t>(pictures.size()));
        }
      });
  line.Clear();
  std::cout << "wrote " << pictures.size() << " images of "
            << PacsClasses().size() << " classes in " << PacsDomains().size()
            << " domains to " << flags.output.string() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  PacsGeneratorFlags flags;
  CLI::App app("Writes generated images in the directories of PACS.",
               "generate_pacs");
  AddFlags(app, flags);
  return RunGenerator(app, argc, argv, [&] { Generate(flags); });
}
